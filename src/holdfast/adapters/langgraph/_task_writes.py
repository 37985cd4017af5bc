"""What tasks wrote, in the journal of the checkpoint they worked on.

The regular writes of a call are one entry, under the task and the place of the first;
a call that finds some of them there adds only what it has beyond them. The marks of an
error, an interrupt and the like stand alone and are replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import msgspec
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import WRITES_IDX_MAP, PendingWrite
from msgspec.structs import replace

from holdfast._values import codec
from holdfast._values.records import Entry, checked_name
from holdfast._values.reference import checked_id
from holdfast.adapters.langgraph._names import (
    Place,
    escaped,
    id_in,
    place_of,
    unescaped,
)
from holdfast.adapters.langgraph._types import Types

_SEPARATOR = " "

# A channel and its value.
_Write = tuple[str, Any]


class Call(msgspec.Struct, frozen=True):
    """A call of ``put_writes``, its writes plain and by place.

    Marks have the places that LangGraph gives them, which are negative.
    """

    place: Place
    checkpoint: str
    task: str
    path: str
    writes: dict[int, _Write]

    @property
    def is_all_marks(self) -> bool:
        """Whether it replaces what is there."""
        return all(place < 0 for place in self.writes)

    def entries(self, now: int) -> tuple[Entry, ...]:
        """The regular writes as one entry, then the marks."""
        regular = [place for place in self.writes if place >= 0]
        groups: dict[int, list[_Write | None]] = {}
        if regular:
            places = range(min(regular), max(regular) + 1)
            groups[places.start] = [self.writes.get(place) for place in places]
        marks = {place: write for place, write in self.writes.items() if place < 0}
        groups |= {place: [write] for place, write in marks.items()}
        return tuple(
            Entry(
                self.place.name,
                self.checkpoint,
                self._key(place),
                codec.encode(self._value(writes), "writes"),
                now,
            )
            for place, writes in groups.items()
        )

    def beyond(self, entry: Entry) -> Call:
        """The regular writes whose places are not taken by what is there."""
        taken = {write.place for write in _written(entry)}
        left = {p: w for p, w in self.writes.items() if p >= 0 and p not in taken}
        return replace(self, writes=left)

    def _key(self, place: int) -> str:
        name = f"{place}{_SEPARATOR}{escaped(self.task)}"
        return checked_name(name, "task id")

    def _value(self, writes: Sequence[_Write | None]) -> dict[str, Any]:
        path = {"path": self.path} if self.path else {}
        return {**path, "writes": [write and list(write) for write in writes]}


def call_of(
    types: Types,
    config: RunnableConfig,
    writes: Sequence[tuple[str, Any]],
    task: tuple[str, str],
) -> Call:
    """What a call of ``put_writes`` asks for; a task is its id and its path."""
    id_, path = task
    return Call(
        place_of(config),
        checked_id(id_in(config)),
        id_,
        path,
        {
            WRITES_IDX_MAP.get(channel, n): (channel, types.plain(value, channel))
            for n, (channel, value) in enumerate(writes)
        },
    )


class Written(msgspec.Struct, frozen=True):
    """A write as it was kept."""

    path: str
    task: str
    place: int
    channel: str
    value: Any

    def revived(self, types: Types) -> PendingWrite:
        """As LangGraph sees it."""
        return self.task, self.channel, types.revive(self.value)


def written(entries: Sequence[Entry]) -> list[Written]:
    """The writes of a checkpoint, in the order in which LangGraph applies them."""
    found: dict[tuple[str, int], Written] = {}
    for entry in entries:
        for write in _written(entry):
            # What was there first stays.
            found.setdefault((write.task, write.place), write)
    return sorted(found.values(), key=lambda w: (w.path, w.task, w.place))


def _written(entry: Entry) -> list[Written]:
    start, _, task = entry.key.partition(_SEPARATOR)
    about = cast("dict[str, Any]", entry.value)
    path = about.get("path", "")
    return [
        Written(path, unescaped(task), int(start) + n, *write)
        for n, write in enumerate(about["writes"])
        if write is not None
    ]
