"""Reading what is packed: blocks are opened, and only the wanted segments given."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast._engine.packing.forms import (
    DICTIONARY,
    WITH_DICTIONARY,
    Opened,
    Opener,
)
from holdfast._port import Backend, Inspection
from holdfast._port.layer import InspectionLayer
from holdfast._values.limits import LARGEST_STATE
from holdfast._values.records import PLAIN, Run, Segment
from holdfast.errors import Corrupt


class Reader:
    """Opens the segments and blocks of a backend."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._dictionary: bytes | None = None

    async def singles(
        self, stored: Sequence[Segment], runs: Sequence[Run], most: int = LARGEST_STATE
    ) -> Sequence[Segment]:
        """The plain segments of runs, from what holds them; ``most`` bytes in all."""
        packings = {segment.packing for segment in stored}
        if packings <= {PLAIN}:
            return stored
        return _within(stored, runs, await self._opener(packings, most))

    async def opened(self, stored: Sequence[Segment]) -> list[Opened]:
        """Segments and blocks with what is in them."""
        opener = await self._opener({segment.packing for segment in stored})
        return [Opened(segment, opener.texts(segment)) for segment in stored]

    async def each(
        self, stored: Sequence[Segment | None], first: int
    ) -> list[Segment | None]:
        """A plain segment for each number from ``first`` on, if it can be opened."""
        there = {segment.number: segment for segment in stored if segment is not None}
        opener = await self._opener({segment.packing for segment in there.values()})
        texts = {number: _sound(one, opener) for number, one in there.items()}
        found: list[Segment | None] = []
        for number, segment in enumerate(stored, first):
            opened = texts[segment.number] if segment is not None else None
            if segment is None or opened is None:
                found.append(None)
            else:
                found.append(Segment(number, opened[number - segment.number]))
        return found

    async def _opener(self, packings: set[int], most: int = LARGEST_STATE) -> Opener:
        if WITH_DICTIONARY in packings and self._dictionary is None:
            self._dictionary = await self._backend.setting(DICTIONARY)
        return Opener(packings, self._dictionary, most)


def _within(
    stored: Sequence[Segment], runs: Sequence[Run], opener: Opener
) -> list[Segment]:
    found: list[Segment] = []
    following = iter(stored)
    for first, last in runs:
        number = first
        while number <= last:
            one = next(following)
            end = min(last, one.last) + 1
            texts = opener.texts(one)[number - one.number : end - one.number]
            found += map(Segment, range(number, end), texts)
            number = end
    return found


def _sound(segment: Segment, opener: Opener) -> list[bytes] | None:
    try:
        return opener.texts(segment)
    except Corrupt:
        return None


class OpenedInspection(InspectionLayer):
    """The view of `Backend.inspect` in which all segments are single and plain.

    What cannot be opened counts as damaged.
    """

    def __init__(self, inspection: Inspection, reader: Reader) -> None:
        super().__init__(inspection)
        self._reader = reader

    async def segments(
        self, wanted: Sequence[tuple[int, Run]]
    ) -> list[list[Segment | None]]:
        found = await super().segments(wanted)
        return [
            await self._reader.each(stored, run.first)
            for stored, (_, run) in zip(found, wanted, strict=True)
        ]
