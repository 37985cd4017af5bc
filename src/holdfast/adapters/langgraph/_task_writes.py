"""The writes of tasks, in the journal of the checkpoint they ran on.

The regular writes of a call are one entry, whose key is the task and the index of the
first write; a call that finds some of them stored adds only the others. Special writes,
such as errors and interrupts, are entries of their own and are replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import WRITES_IDX_MAP, PendingWrite
from msgspec.structs import replace

from holdfast.adapters.langgraph._namespace import Namespace, id_in, namespace_of
from holdfast.adapters.langgraph._types import Types
from holdfast.backends import Entry
from holdfast.operations.graphs import SEPARATOR, escaped, task_entry, unescaped
from holdfast.operations.values import checked_id, checked_name, codec

# A channel and its value.
_Write = tuple[str, Any]


class TaskWrites(msgspec.Struct, frozen=True):
    """The writes of one call of ``put_writes``, by index, as plain values.

    Special writes have the negative indexes that LangGraph gives them.
    """

    namespace: Namespace
    checkpoint: str
    task: str
    path: str
    writes: dict[int, _Write]

    @property
    def are_special(self) -> bool:
        """True if all writes are special, and so replace stored ones."""
        return all(index < 0 for index in self.writes)

    def entries(self, now: int) -> tuple[Entry, ...]:
        """The regular writes as one entry, then one entry for each special write."""
        regular = [index for index in self.writes if index >= 0]
        groups: dict[int, list[_Write | None]] = {}
        if regular:
            indexes = range(min(regular), max(regular) + 1)
            groups[indexes.start] = [self.writes.get(index) for index in indexes]
        groups |= {i: [write] for i, write in self.writes.items() if i < 0}
        return tuple(
            Entry(
                self.namespace.name,
                self.checkpoint,
                self._key(index),
                codec.encode(self._value(writes), "writes"),
                now,
            )
            for index, writes in groups.items()
        )

    def beyond(self, entry: Entry) -> TaskWrites:
        """The regular writes with indexes that a stored entry does not have."""
        taken = {write.index for write in _written(entry)}
        left = {p: w for p, w in self.writes.items() if p >= 0 and p not in taken}
        return replace(self, writes=left)

    def _key(self, index: int) -> str:
        name = f"{index}{SEPARATOR}{escaped(self.task)}"
        return checked_name(name, "task id")

    def _value(self, writes: Sequence[_Write | None]) -> dict[str, Any]:
        path = {"path": self.path} if self.path else {}
        return {**path, "writes": [write and list(write) for write in writes]}


def task_writes(
    types: Types,
    config: RunnableConfig,
    writes: Sequence[tuple[str, Any]],
    task: tuple[str, str],
) -> TaskWrites:
    """The writes of a call of ``put_writes``; a task is its id and its path."""
    id_, path = task
    return TaskWrites(
        namespace_of(config),
        checked_id(id_in(config)),
        id_,
        path,
        {
            WRITES_IDX_MAP.get(channel, n): (channel, types.plain(value, channel))
            for n, (channel, value) in enumerate(writes)
        },
    )


class StoredWrite(msgspec.Struct, frozen=True):
    """A stored write of a task."""

    path: str
    task: str
    index: int
    channel: str
    value: Any

    def revived(self, types: Types) -> PendingWrite:
        """The write for LangGraph."""
        return self.task, self.channel, types.revive(self.value)


def written(entries: Sequence[Entry]) -> list[StoredWrite]:
    """The writes of a checkpoint, in the order in which LangGraph applies them."""
    if len(entries) == 1:
        return _written(entries[0])
    found: dict[tuple[str, int], StoredWrite] = {}
    for entry in entries:
        for write in _written(entry):
            # The write that was stored first counts.
            found.setdefault((write.task, write.index), write)
    return sorted(found.values(), key=lambda w: (w.path, w.task, w.index))


def _written(entry: Entry) -> list[StoredWrite]:
    found = task_entry(entry.key, entry.value)
    if found is None:  # a caller recorded it
        return []
    path, task = found.path, unescaped(found.task)
    return [
        StoredWrite(path, task, index, *write)
        for index, write in enumerate(found.writes, found.index)
        if write is not None
    ]
