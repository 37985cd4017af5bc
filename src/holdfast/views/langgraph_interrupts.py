"""Interrupts of LangGraph threads: what a paused graph waits for.

Read from the stored form, so that it works without LangGraph. The tasks of a graph
write to the journal of the checkpoint they work on. A task that has written anything
but such control writes has finished, and waits for nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import msgspec

from holdfast._engine.context import Context
from holdfast._engine.threads.journal import recorded
from holdfast._messages.langgraph_form import KIND, TaskEntry, task_entry
from holdfast._messages.loose import fields_of, parts_of
from holdfast._values.records import ThreadRecord

_INTERRUPT = "__interrupt__"
# How the path of a task begins that is named by its node.
_BY_NAME = "__pregel_pull"
_CONTROL = frozenset(
    {_INTERRUPT, "__resume__", "__error__", "__error_source_node__", "__scheduled__"}
)


class Waiting(msgspec.Struct, frozen=True):
    """A question that a graph waits to be answered.

    ``node`` asked it; it is empty for a task that was sent, which has a number only.
    """

    id: str
    value: Any
    node: str = ""


async def waiting(context: Context, record: ThreadRecord) -> list[Waiting]:
    """The open questions of a thread, in the order of its tasks.

    A subgraph's question is also one of the graph around it, which has to be resumed.
    """
    if record.kind != KIND or record.head is None:
        return []
    tasks: dict[str, list[tuple[str, str, Any]]] = defaultdict(list)
    entries = await recorded(context, record.id, record.head)
    for key, value in entries.items():
        entry = task_entry(key, value)
        if entry is not None:  # a caller may record there too
            tasks[entry.task] += _writes(entry)
    open_tasks = [
        writes
        for writes in tasks.values()
        if all(channel in _CONTROL for _, channel, _ in writes)
    ]
    return [
        question
        for writes in sorted(open_tasks, key=_path)
        for question in _questions(writes)
    ]


def _writes(entry: TaskEntry) -> Iterator[tuple[str, str, Any]]:
    """The task's path, the channel and the value of each write of an entry."""
    for write in entry.writes:
        if write is not None:
            yield entry.path, *write


def _path(writes: list[tuple[str, str, Any]]) -> str:
    return max((path for path, _, _ in writes), default="")


def _questions(writes: list[tuple[str, str, Any]]) -> Iterator[Waiting]:
    for path, channel, value in writes:
        if channel == _INTERRUPT:
            # A serializer of the caller's may have made it unreadable.
            for asked in parts_of(value) or [None]:
                fields = fields_of(asked)
                id_ = str(fields.get("id", ""))
                yield Waiting(id_, fields.get("value"), _node(path))


def _node(path: str) -> str:
    kind, _, rest = path.partition(", ")
    return rest if kind.endswith(_BY_NAME) else ""
