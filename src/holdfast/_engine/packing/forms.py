"""The forms in which segments and blocks are stored: making and reading them.

A block is the bytes of several segments as one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from importlib import import_module
from itertools import accumulate, pairwise
from typing import Any, Final

import msgspec

from holdfast._values.limits import LARGEST_STATE
from holdfast._values.records import PLAIN, Run, Segment
from holdfast.errors import Corrupt, MissingExtra

# The forms beside the plain one. Segments of format 1 may need a dictionary, which was
# trained on the texts of the store. None is made any more: it kept text that had been
# deleted everywhere else.
ALONE, WITH_DICTIONARY, BLOCK, PACKED_BLOCK = range(1, 5)
# The setting that has the dictionary.
DICTIONARY = f"zstd dictionary {WITH_DICTIONARY}"
BLOCKS = {BLOCK, PACKED_BLOCK}
_AS_THEY_ARE = {PLAIN, BLOCK}
SMALLEST = 64
# No block that is read may claim to be larger.
LARGEST_BLOCK = 1 << 20

Decompress = Callable[[bytes], bytes]


class Effort(msgspec.Struct, frozen=True):
    """The largest size of blocks in bytes, and the level of compression."""

    size: int
    level: int


# Like git's packs: large enough that messages compress as a whole text does, and small
# enough that reading one message of it takes a tenth of a millisecond.
GROWING: Final = Effort(64 << 10, 6)
# What `compact` joins is seldom read by the message, and takes 0.84 of that. To read
# one message takes eight times as long, half a millisecond, and damage costs eight
# times as many. Level 16 would take five times as long, for 0.96 of the bytes.
COLD: Final = Effort(512 << 10, 11)


class Form:
    """The form in which new segments and blocks are stored."""

    def __init__(self, *, compress: bool) -> None:
        self.compresses = compress

    def alone(self) -> Callable[[Segment], Segment]:
        """A function that puts a plain segment into this form; for one thread."""
        if not self.compresses:
            return lambda segment: segment
        compress = zstd().ZstdCompressor(level=GROWING.level).compress

        def packed(segment: Segment) -> Segment:
            if len(segment.data) < SMALLEST:
                return segment
            data: bytes = compress(segment.data)
            smaller = len(data) < len(segment.data)
            return Segment(segment.number, data, ALONE) if smaller else segment

        return packed

    @property
    def cold(self) -> Effort:
        """For what is joined once and for long; plain blocks gain nothing by size."""
        return COLD if self.compresses else GROWING

    def together(
        self, number: int, texts: Sequence[bytes], effort: Effort = GROWING
    ) -> Segment:
        """Segments from a number on as one block; a single one stays without."""
        if len(texts) == 1:
            return self.alone()(Segment(number, texts[0]))
        data = joined(texts)
        if not self.compresses:
            return Segment(number, data, BLOCK, len(texts))
        packed = zstd().ZstdCompressor(level=effort.level).compress(data)
        return Segment(number, packed, PACKED_BLOCK, len(texts))

    def is_of(self, packing: int) -> bool:
        """True if a segment with this packing may be in this form."""
        packed = {ALONE, PACKED_BLOCK} if self.compresses else {PLAIN, BLOCK}
        return packing in packed


class Opener:
    """Gives the bytes of segments and blocks in any form.

    One for each read: to make a decompressor takes longer than to decompress a message
    with it, and threads must not share one. A few bytes may claim to be gigabytes: it
    opens segments of ``most`` bytes in all, and no large blocks.
    """

    def __init__(
        self, packings: set[int], dictionary: bytes | None, most: int = LARGEST_STATE
    ) -> None:
        self._left = most
        self._open: dict[int, Decompress] = {PLAIN: bytes, BLOCK: bytes}
        self._refusals: tuple[type[Exception], ...] = ()
        if packings <= self._open.keys():
            return
        package = zstd()
        self._refusals = (package.ZstdError,)
        alone = package.ZstdDecompressor().decompress
        self._open |= {ALONE: alone, PACKED_BLOCK: alone}
        if dictionary is not None:
            given = package.ZstdCompressionDict(dictionary)
            decompress = package.ZstdDecompressor(dict_data=given).decompress
            self._open[WITH_DICTIONARY] = decompress

    def texts(self, segment: Segment) -> list[bytes]:
        """The bytes of each segment that it holds."""
        is_block = segment.packing in BLOCKS
        if (segment.count > 1) is not is_block:
            raise misshapen(segment)
        data = self._bytes(segment)
        return divided(data, segment) if is_block else [data]

    def _bytes(self, segment: Segment) -> bytes:
        packing = segment.packing
        if packing == WITH_DICTIONARY and packing not in self._open:
            raise Corrupt("the compression dictionary", "it is missing")
        try:
            if packing not in _AS_THEY_ARE:
                self._check_size(segment)
            return self._open[packing](segment.data)
        except KeyError:
            raise misshapen(segment) from None
        except self._refusals as error:
            raise Corrupt(f"segment {segment.number}", str(error)) from None

    def _check_size(self, segment: Segment) -> None:
        size = zstd().frame_content_size(segment.data)
        if segment.packing == PACKED_BLOCK:
            is_larger = size > LARGEST_BLOCK
        else:
            self._left -= size
            is_larger = self._left < 0
        if size < 0 or is_larger:
            raise misshapen(segment)


@cache  # looking for a module that is missing takes longer than compressing
def zstd() -> Any:
    """The package that compresses; `MissingExtra` if it is not installed."""
    try:
        return import_module("zstandard")
    except ImportError:
        text = "compression needs zstd: pip install 'holdfast[zstd]'"
        raise MissingExtra(text) from None


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
        """Its size in a block."""
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
