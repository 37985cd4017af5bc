"""The storage technologies, one folder each, and what it takes to write another one.

Authors of backends and layers import the port from here: the verbs (`Backend`,
`BlockingBackend`), the layers over a backend (`Layer`, `ContentLayer`), and the values
that the verbs take and give. docs/writing-a-backend.md explains them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from holdfast._port import (
    Admission,
    Adoption,
    Ancestors,
    Backend,
    BlockingBackend,
    Candidate,
    Candidates,
    CheckpointKey,
    Details,
    Entries,
    Facts,
    FamilyPlan,
    Indexed,
    Indexing,
    IndexKey,
    Inspection,
    Key,
    Mark,
    Marked,
    Matches,
    Moves,
    Outcome,
    Outdated,
    Prune,
    Pruned,
    Query,
    Receipt,
    Relink,
    Rescued,
    Saves,
    Scattered,
    Stale,
    Start,
    StateKey,
    Stored,
    Stretch,
    ThreadKey,
    Threads,
    Turn,
    Weight,
    Weights,
    Write,
)
from holdfast._values.records import (
    UNSET,
    Change,
    Checkpoint,
    Entry,
    Move,
    Origin,
    Page,
    Run,
    Segment,
    ThreadRecord,
    Unset,
)

if TYPE_CHECKING:
    from holdfast._port.content_layer import ContentLayer, Location
    from holdfast._port.layer import Layer

__all__ = [
    "UNSET",
    "Admission",
    "Adoption",
    "Ancestors",
    "Backend",
    "BlockingBackend",
    "Candidate",
    "Candidates",
    "Change",
    "Checkpoint",
    "CheckpointKey",
    "ContentLayer",
    "Details",
    "Entries",
    "Entry",
    "Facts",
    "FamilyPlan",
    "IndexKey",
    "Indexed",
    "Indexing",
    "Inspection",
    "Key",
    "Layer",
    "Location",
    "Mark",
    "Marked",
    "Matches",
    "Move",
    "Moves",
    "Origin",
    "Outcome",
    "Outdated",
    "Page",
    "Prune",
    "Pruned",
    "Query",
    "Receipt",
    "Relink",
    "Rescued",
    "Run",
    "Saves",
    "Scattered",
    "Segment",
    "Stale",
    "Start",
    "StateKey",
    "Stored",
    "Stretch",
    "ThreadKey",
    "ThreadRecord",
    "Threads",
    "Turn",
    "Unset",
    "Weight",
    "Weights",
    "Write",
]

# Loaded when they are used: opening a store loads this package, and needs no layer.
_MODULES = {
    "ContentLayer": "content_layer",
    "Layer": "layer",
    "Location": "content_layer",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'holdfast.backends' has no attribute {name!r}")
    found: object = getattr(import_module(f"holdfast._port.{_MODULES[name]}"), name)
    globals()[name] = found
    return found
