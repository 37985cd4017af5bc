"""A block: the bytes of several segments as one, and back."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise

import msgspec

from holdfast._values.records import Run, Segment
from holdfast.errors import Corrupt

# No block that is read may claim to be larger.
LARGEST_BLOCK = 1 << 20


class Opened(msgspec.Struct, frozen=True):
    """A segment or a block as it is stored, and the bytes of each segment in it."""

    stored: Segment
    texts: list[bytes]

    @property
    def run(self) -> Run:
        """The numbers in it."""
        return Run(self.stored.number, self.stored.last)

    def of(self, run: Run) -> list[bytes]:
        """The bytes of some of its segments."""
        start = self.stored.number
        return self.texts[run.first - start : run.last + 1 - start]

    @property
    def size(self) -> int:
        """How large it is in a block."""
        return sum(map(len, self.texts)) + 4 * len(self.texts)


def joined(texts: Sequence[bytes]) -> bytes:
    """The bytes of a block: the sizes of its segments, and then their bytes."""
    return struct.pack(f"<{len(texts)}I", *map(len, texts)) + b"".join(texts)


def divided(data: bytes, block: Segment) -> list[bytes]:
    """The bytes of the segments in a block, given the bytes of the block."""
    start = 4 * block.count
    if len(data) < start:
        raise misshapen(block)
    ends = [*accumulate(struct.unpack_from(f"<{block.count}I", data), initial=start)]
    if ends[-1] != len(data):
        raise misshapen(block)
    return [data[start:end] for start, end in pairwise(ends)]


def misshapen(segment: Segment) -> Corrupt:
    """The error for a segment or block whose bytes are not what it says."""
    return Corrupt(f"segment {segment.number}", "its content has another form")


def grouped(opened: Iterable[Opened], largest: int) -> Iterator[list[Opened]]:
    """Neighbours that fit into one block; a block is not divided for it."""
    group: list[Opened] = []
    size = 0
    for one in opened:
        is_next = group and group[-1].stored.last + 1 == one.stored.number
        if group and (not is_next or size + one.size > largest):
            yield group
            group, size = [], 0
        group.append(one)
        size += one.size
    if group:
        yield group
