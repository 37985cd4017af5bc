"""Reading what is packed: blocks are opened, and only the wanted segments given."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast._engine.packing.blocks import Opened
from holdfast._engine.packing.forms import PLAIN, WITH_DICTIONARY, Opener
from holdfast._port import Backend, Inspection, Place, Portion, Rescued
from holdfast._values.records import Checkpoint, Entry, Run, Segment, ThreadRecord
from holdfast.errors import Corrupt

DICTIONARY = f"zstd dictionary {WITH_DICTIONARY}"


class Reader:
    """Opens the segments and blocks of a backend."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._dictionary: bytes | None = None

    async def singles(
        self, stored: Sequence[Segment], runs: Sequence[Run]
    ) -> Sequence[Segment]:
        """The plain segments of runs, from what holds them."""
        packings = {segment.packing for segment in stored}
        if packings <= {PLAIN}:
            return stored
        return _within(stored, runs, await self._opener(packings))

    async def opened(self, stored: Sequence[Segment]) -> list[Opened]:
        """Segments and blocks with what is in them."""
        opener = await self._opener({segment.packing for segment in stored})
        return [Opened(segment, opener.texts(segment)) for segment in stored]

    async def each(
        self, stored: Sequence[Segment | None], first: int
    ) -> list[Segment | None]:
        """A plain segment for each number from ``first`` on, if it can be opened."""
        packings = {segment.packing for segment in stored if segment is not None}
        opener = await self._opener(packings)
        return [
            segment and _sound(segment, number, opener)
            for number, segment in enumerate(stored, first)
        ]

    async def _opener(self, packings: set[int]) -> Opener:
        if WITH_DICTIONARY in packings and self._dictionary is None:
            self._dictionary = await self._backend.setting(DICTIONARY)
        return Opener(packings, self._dictionary)


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


def _sound(segment: Segment, number: int, opener: Opener) -> Segment | None:
    try:
        texts = opener.texts(segment)
    except Corrupt:
        return None
    return Segment(number, texts[number - segment.number])


class OpenedInspection:
    """The view of `Backend.inspect` in which all segments are single and plain.

    What cannot be opened counts as damaged.
    """

    def __init__(self, inspection: Inspection, reader: Reader) -> None:
        self._inspection = inspection
        self._reader = reader

    async def segments(
        self, wanted: Sequence[tuple[int, Run]]
    ) -> list[list[Segment | None]]:
        found = await self._inspection.segments(wanted)
        return [
            await self._reader.each(stored, run.first)
            for stored, (_, run) in zip(found, wanted, strict=True)
        ]

    async def rescue(self) -> Rescued:
        return await self._inspection.rescue()

    async def threads(self, after: Place) -> Portion[ThreadRecord]:
        return await self._inspection.threads(after)

    async def checkpoints(self, after: Place) -> Portion[Checkpoint]:
        return await self._inspection.checkpoints(after)

    async def entries(self, after: Place) -> Portion[Entry]:
        return await self._inspection.entries(after)

    async def headed_by(self, lost: Sequence[int]) -> list[str]:
        return await self._inspection.headed_by(lost)

    async def checkpoint(self, family: int, id_: str) -> Checkpoint | None:
        return await self._inspection.checkpoint(family, id_)

    async def count_checkpoints(self) -> int:
        return await self._inspection.count_checkpoints()

    async def count_segments(self) -> int:
        return await self._inspection.count_segments()

    async def close(self) -> None:
        await self._inspection.close()
