"""Graphs: the form in which LangGraph's checkpoints are stored, and their line.

The engine reads this form too, where LangGraph is not installed.
"""

from holdfast._engine.effects.graph_line import GraphLine, begins_after, origin_of
from holdfast._messages.langgraph_form import (
    FRAME,
    KIND,
    PARENT,
    SEPARATOR,
    SUBGRAPH,
    VECTORS,
    escaped,
    fitting,
    subgraph_name,
    task_entry,
    unescaped,
)

__all__ = [
    "FRAME",
    "KIND",
    "PARENT",
    "SEPARATOR",
    "SUBGRAPH",
    "VECTORS",
    "GraphLine",
    "begins_after",
    "escaped",
    "fitting",
    "origin_of",
    "subgraph_name",
    "task_entry",
    "unescaped",
]
