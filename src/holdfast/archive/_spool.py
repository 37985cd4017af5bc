"""Families on a temporary file until all are known: an archive begins with all of them.

A family is read from the store once, at one moment, while others go on writing. Only
numbers, names and digests stay in memory.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import AsyncIterable, Iterable, Iterator
from typing import IO, BinaryIO, NamedTuple, TypeAlias

import msgspec

from holdfast._port import Adoption
from holdfast._values.typed import prepare
from holdfast.archive._contents import (
    Contents,
    FamilyLine,
    Heading,
    fingerprint,
    living,
    refounded,
    seqs_of,
    sizes_of,
)
from holdfast.archive._frames import FrameWriter, framed
from holdfast.archive._records import encoded, forms_of

CHUNK = 1 << 20
Segments: TypeAlias = AsyncIterable[bytes | None]


class _Spooled(NamedTuple):
    """The place of a family in the file, and the heading's facts about it."""

    order: int
    line: FamilyLine
    checkpoints: int
    entries: int
    segments: int
    start: int
    end: int
    # The place at which the segments begin, as frames.
    middle: int


class Spool:
    """Takes families with the numbers of a store, and writes them as an archive."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._families: list[_Spooled] = []
        self._seqs, self._numbers = array("q"), array("q")

    async def add(self, family: Adoption, segments: Segments) -> bool:
        """Add a family with its segments; false, and nothing added, if some are lost.

        ``segments`` gives ``None`` if one of them is not there any more.
        """
        start = self._file.seek(0, 2)
        self._file.write(msgspec.msgpack.encode(family))
        middle = self._file.tell()
        async for data in segments:
            if data is None:
                self._file.truncate(start)
                return False
            self._file.write(framed("segment", data))
        self._note(family, start, middle)
        return True

    def _note(self, family: Adoption, start: int, middle: int) -> None:
        line = FamilyLine(tuple(living(family)), fingerprint(family))
        spooled = _Spooled(
            order=min(thread.number for thread in family.threads),
            line=line,
            checkpoints=len(family.checkpoints),
            entries=len(family.entries),
            segments=sizes_of(family).segments,
            start=start,
            end=self._file.tell(),
            middle=middle,
        )
        self._families.append(spooled)
        self._seqs.extend(seqs_of(family))
        self._numbers.extend(thread.number for thread in family.threads)

    def write(self, to: BinaryIO) -> Contents:
        """Write the archive."""
        families = sorted(self._families)
        seqs, numbers = _Ranks(self._seqs), _Ranks(self._numbers)
        frames = FrameWriter(to)
        lines = tuple(spooled.line for spooled in families)
        frames.write("archive", encoded(Heading(len(seqs), len(numbers), lines)))
        for spooled in families:
            family = refounded(self._records(spooled))
            counted = family.renumbered(seqs.rank, numbers.rank)
            frames.write("family", encoded(sizes_of(counted)))
            for kind, form in forms_of(counted):
                frames.write(kind, encoded(form))
            for chunk in self._between(spooled.middle, spooled.end):
                frames.copy(chunk)
        return Contents(
            tuple(name for line in lines for name in line.threads),
            sum(spooled.checkpoints for spooled in families),
            sum(spooled.segments for spooled in families),
            sum(spooled.entries for spooled in families),
            frames.end(),
        )

    def _records(self, spooled: _Spooled) -> Adoption:
        found = b"".join(self._between(spooled.start, spooled.middle))
        return msgspec.msgpack.decode(found, type=Adoption)

    def _between(self, start: int, end: int) -> Iterator[bytes]:
        self._file.seek(start)
        while start < end:
            chunk = self._file.read(min(CHUNK, end - start))
            start += len(chunk)
            yield chunk


class _Ranks:
    """Numbers counted from 1 in their order, each once."""

    def __init__(self, numbers: Iterable[int]) -> None:
        self._sorted = array("q")
        for number in sorted(numbers):
            if not self._sorted or self._sorted[-1] != number:
                self._sorted.append(number)

    def __len__(self) -> int:
        return len(self._sorted)

    def rank(self, number: int) -> int:
        """The rank of one of the numbers."""
        return bisect_left(self._sorted, number) + 1


prepare(Adoption)
