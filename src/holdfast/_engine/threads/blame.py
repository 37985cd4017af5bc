"""Finding the checkpoint that set a value, without loading what did not change.

Values that consist of the same segments are equal. Of a list only the segments up to
the element in question are read, each of them once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final, NamedTuple, cast

import msgspec

from holdfast._engine.cache import OpenedCheckpoint
from holdfast._engine.context import Context
from holdfast._engine.threads.lineage import Reference, resolve
from holdfast._engine.threads.load import state_of
from holdfast._port import Ancestors
from holdfast._values import codec
from holdfast._values.manifest import Manifest, Value, decode_manifest
from holdfast._values.paths import Part, find_at, index_of, parse_path
from holdfast._values.records import Checkpoint, Run
from holdfast._values.rope import Rope, numbers
from holdfast._values.runs import count_segments, first_runs
from holdfast.diff import diff
from holdfast.errors import Corrupt, NotFound

CHUNK = 200
# How many segments are read at a time on the way to an element.
SEGMENTS = 64

_NOTHING: Final = object()


class Blame(msgspec.Struct, frozen=True):
    """The ``checkpoint`` that set a value that all later ones have.

    ``previous`` is the checkpoint before it, which has another value at the path;
    ``None`` if it has none.
    """

    path: str
    value: object
    checkpoint: Checkpoint
    previous: Checkpoint | None


async def blame(context: Context, thread: str, path: str, at: Reference) -> Blame:
    """The checkpoint that last set the value at a path."""
    places = _Locations(context, parse_path(path))
    since = await resolve(context, thread, at)
    place = await places.find(since)
    value = await places.value(place)
    if value is _NOTHING:
        raise NotFound(
            f"checkpoint {since.id!r} has nothing at {path!r}; look at its state",
            thread=thread,
            reference=path,
        )
    async for older in _ancestors(context, since):
        found = await places.find(older, place)
        if not found.is_same(place):
            was = await places.value(found)
            if was is _NOTHING or len(diff(was, value)):
                return Blame(path, value, since, None if was is _NOTHING else older)
        since, place = older, found
    return Blame(path, value, since, None)


async def _ancestors(context: Context, start: Checkpoint) -> AsyncIterator[Checkpoint]:
    while True:
        page = await context.backend.scan(Ancestors(start=start, skip=1, limit=CHUNK))
        for checkpoint in page:
            yield checkpoint
        if len(page) < CHUNK:
            return
        start = page[-1]


class _Spot(NamedTuple):
    """The place of an element of a list: its segment, and its index in that segment.

    ``front`` are the runs up to that segment. A list that begins with the same runs
    has the same element at the same index.
    """

    segment: int
    offset: int
    front: tuple[Run, ...]


class _Location(NamedTuple):
    """The value in a checkpoint; ``values`` are the named values around it."""

    checkpoint: Checkpoint
    values: dict[str, Value]
    spot: _Spot | None

    def is_same(self, other: _Location) -> bool:
        if self.spot is not None and other.spot is not None:
            return self.spot[:2] == other.spot[:2]
        return _identity(self.values) == _identity(other.values)


def _identity(values: dict[str, Value]) -> list[object]:
    """Equal, within a family, only for values with the same bytes."""
    return [
        (name, value.is_list, value.runs) if isinstance(value, Rope) else (name, value)
        for name, value in values.items()
    ]


class _Locations:
    """Finds the value at one path in the checkpoints of one line."""

    def __init__(self, context: Context, parts: tuple[Part, ...]) -> None:
        self.context, self.parts = context, parts
        # The number of elements in a segment, -1 if it does not hold whole elements.
        self.counts: dict[int, int] = {}

    async def find(
        self, checkpoint: Checkpoint, newer: _Location | None = None
    ) -> _Location:
        """The place of the value in a checkpoint; there may be no value."""
        manifest = decode_manifest(checkpoint)
        values, inside = self._values(manifest)
        value = next(iter(values.values()), None)
        index = index_of(inside[0]) if inside else None
        is_list = isinstance(value, Rope) and value.is_list
        if not is_list or index is None or index < 0 or len(values) > 1:
            return _Location(checkpoint, values, None)
        rope = cast("Rope", value)
        spot = _kept(rope, newer.spot) if newer is not None and newer.spot else None
        spot = spot or await self._spot(checkpoint.family, rope, index)
        return _Location(checkpoint, values, spot)

    def _values(self, manifest: Manifest) -> tuple[dict[str, Value], Sequence[Part]]:
        """The values the path leads into, and the rest of the path."""
        if not manifest.is_mapping:
            return manifest.values, self.parts
        if not self.parts:
            return manifest.values, ()
        name = str(self.parts[0])
        value = manifest.values.get(name)
        return ({} if value is None else {name: value}), self.parts[1:]

    async def value(self, place: _Location) -> object:
        """The value at a location, `_NOTHING` if there is none."""
        manifest = decode_manifest(place.checkpoint)
        if self.parts and not place.values:
            return _NOTHING
        try:
            if place.spot is not None:
                element = await self._element(place.checkpoint.family, place.spot)
                return find_at(element, self.parts[1 + manifest.is_mapping :])
            chosen = Manifest(manifest.is_mapping, place.values)
            state = await state_of(
                self.context, OpenedCheckpoint(place.checkpoint, chosen)
            )
            return find_at(state, self.parts)
        except KeyError:
            return _NOTHING

    async def _element(self, family: int, spot: _Spot) -> object:
        elements = await self._elements(family, Run(spot.segment, spot.segment))
        return cast("list[object]", codec.decode(elements[0]))[spot.offset]

    async def _spot(self, family: int, rope: Rope, index: int) -> _Spot | None:
        """The place of an element, ``None`` if the whole list has to be read."""
        passed = 0
        all_ = numbers(rope.runs)
        for position, number in enumerate(all_):
            if number not in self.counts:
                await self._count(family, all_[position : position + SEGMENTS])
            count = self.counts[number]
            if count < 0:
                return None
            if passed + count > index:
                front = tuple(first_runs(rope.runs, position + 1))
                return _Spot(number, index - passed, front)
            passed += count
        return None

    async def _count(self, family: int, segments: Sequence[int]) -> None:
        unknown = [number for number in segments if number not in self.counts]
        runs = [Run(number, number) for number in unknown]
        texts = await self._elements(family, *runs)
        for number, text in zip(unknown, texts, strict=True):
            try:
                self.counts[number] = len(cast("list[object]", codec.decode(text)))
            except Corrupt:  # it begins or ends inside an element
                self.counts[number] = -1

    async def _elements(self, family: int, *runs: Run) -> list[bytes]:
        segments = await self.context.backend.segments(family, runs)
        return [b"[%b]" % segment.data for segment in segments]


def _kept(rope: Rope, spot: _Spot) -> _Spot | None:
    """The same spot, if another rope begins with the same segments."""
    front = tuple(first_runs(rope.runs, count_segments(spot.front)))
    return spot if front == spot.front else None
