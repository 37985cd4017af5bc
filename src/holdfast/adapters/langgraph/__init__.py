"""LangGraph's checkpoints and long-term memory in a Holdfast store.

    LangGraph                        Holdfast
    ---------                        --------
    thread                           thread of the same name, kind "langgraph"
    namespace of a subgraph          thread "<thread>#<namespace>"
    checkpoint                       checkpoint with the same id
    channel                          value of the state, by name
    versions, ts and the like        the value "__checkpoint__"
    metadata                         metadata of the checkpoint
    latest checkpoint                head
    invoke with a checkpoint_id      rewind and save, in one transaction
    pending writes                   journal of the checkpoint, by task
    tool call of `once`              journal of the thread, an effect
    item of a store                  thread of kind "item"
    vectors of an item               the value "__vectors__" of its state

`HoldfastSaver` is a checkpointer, which can also import the checkpoints of LangGraph's
own savers. `HoldfastStore` is a store for items. `once` makes a tool that is called
once, also if a graph is resumed, replayed or forked. Needs the extra: ``pip install
'holdfast[langgraph]'``.
"""

from __future__ import annotations

from holdfast.operations import import_extra

import_extra("langgraph.checkpoint.base", "LangGraph", "langgraph")

from holdfast.adapters.langgraph._once import (  # noqa: E402 - see above
    aonce_tool_call,
    once,
    once_tool_call,
)
from holdfast.adapters.langgraph._saver import HoldfastSaver  # noqa: E402
from holdfast.adapters.langgraph._store import HoldfastStore  # noqa: E402

__all__ = [
    "HoldfastSaver",
    "HoldfastStore",
    "aonce_tool_call",
    "once",
    "once_tool_call",
]
