"""Values as ropes of segments: which segments of an old value a new one can keep.

Pure: bytes in, segments and runs out. The segments of a list hold whole elements; its
text is the segments joined by commas, in brackets. Appending to a list, dropping from
its front and editing elements therefore leave the other segments unchanged. The text of
any other value is its segments, concatenated.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from itertools import chain, islice

import msgspec
import orjson

from holdfast._values.records import Run, Segment

SEGMENT_SIZE = 8192
# The first elements of a list, such as a system prompt, and elements that were just
# edited are likely to change again: they get a segment each, unless they are tiny.
FINE_ELEMENTS = 8
TINY = 64
# A list that edits have divided into more runs than this is written as a whole.
MOST_RUNS = 64
# Searching for a segment that was removed scans the rest of the text, so the search
# ends after this many.
MOST_MISSES = 16

# Numbers are handed out in blocks, so that several growing values keep unbroken runs. A
# next number that is a multiple of the block size means "take a new block first".
BLOCK = 4096
LAST_BLOCK = (1 << 32) // BLOCK - 1


class Rope(msgspec.Struct, frozen=True):
    """A value in segments: the segments, and the numbers that an append needs.

    ``chain`` is the running digest over the segments. Appended segments and segments
    that replace others take numbers from separate blocks, so that both form runs.
    """

    is_list: bool
    runs: tuple[Run, ...]
    size: int
    chain: bytes
    next_appended: int
    next_replaced: int


class Body(msgspec.Struct):
    """A rope in memory: the JSON text of its value, and the sizes of its segments.

    ``hashes`` are the hashes of the first segments; the others are computed when they
    are needed.
    """

    # msgspec copies an empty default for each instance, faster than a factory.

    text: bytearray = bytearray()
    sizes: list[int] = []
    hashes: list[bytes] = []


class Blocks(msgspec.Struct):
    """Hands out unused blocks of segment numbers, beginning with ``next``."""

    next: int

    def number(self, following: int) -> int:
        """``following`` if it is in a block, else the first number of a new block.

        A new block that lies behind the old one continues its run. Otherwise the first
        number is skipped, because as a next number a multiple of the block size means
        "take a new block first".
        """
        if following % BLOCK:
            return following
        first = self.next * BLOCK
        self.next = self.next + 1 if self.next < LAST_BLOCK else 0
        return first if first == following != 0 else first + 1


# Part of a new value: the index of an old segment that is kept, or new bytes.
Piece = int | bytes


class Spliced(msgspec.Struct, frozen=True):
    """A new rope, the segments it adds, and its bytes in memory."""

    rope: Rope
    segments: tuple[Segment, ...]
    body: Body


def is_list(text: bytes) -> bool:
    return text[:1] == b"["


def write(text: bytes, blocks: Blocks, old: Rope | None = None) -> Spliced:
    """A value that keeps no segment; its numbers continue those of ``old``."""
    inner, as_list = _inner(text)
    pieces: list[Piece] = [*_cut(inner, as_list=as_list, fine=FINE_ELEMENTS)]
    appended, replaced = (old.next_appended, old.next_replaced) if old else (0, 0)
    empty = Rope(as_list, (), 0, b"", appended, replaced)
    return _assemble(_Assembly(empty, Body(), blocks), pieces, text)


def append(old: Rope, body: Body | None, addition: bytes, blocks: Blocks) -> Spliced:
    """A list with more elements, given as comma-joined JSON.

    The old segments are not read; ``body`` is extended in place if it is in memory.
    """
    running, runs, number = old.chain, old.runs, old.next_appended
    segments: list[Segment] = []
    # An addition is most often one segment.
    is_one = old.is_list and len(addition) <= SEGMENT_SIZE
    cut = (addition,) if is_one else _cut(addition, as_list=old.is_list, fine=0)
    for data in cut:
        number = number if number % BLOCK else blocks.number(number)
        segments.append(Segment(number, data))
        runs = _extended(runs, number)
        running = hashlib.sha256(running + hashlib.sha256(data).digest()).digest()
        if body is not None:
            _push(body, data, as_list=old.is_list)
        number += 1
    size = old.size + len(addition) + old.is_list
    rope = Rope(old.is_list, runs, size, running, number, old.next_replaced)
    return Spliced(rope, tuple(segments), body or Body())


def splice(old: Rope, body: Body, text: bytes, blocks: Blocks) -> Spliced:
    """A new version of a value that keeps every old segment it can.

    Returns ``old`` itself when nothing changed; may extend ``body`` in place.
    """
    as_list = is_list(text)
    if as_list != old.is_list:
        return write(text, blocks, old)
    start, end = int(as_list), len(text) - as_list
    rest = len(body.text) - as_list
    if _begins_with(text, body.text, rest):
        if rest == end:
            return Spliced(old, (), body)
        if not as_list or text[rest] == _COMMA:
            return append(old, body, text[rest + as_list : end], blocks)
    pieces = list(_pieces(body, text, start, end))
    if not any(isinstance(piece, int) for piece in pieces):
        return write(text, blocks, old)
    spliced = _assemble(_Assembly(old, body, blocks), pieces, text)
    if len(spliced.rope.runs) <= MOST_RUNS:
        return spliced
    return write(text, blocks, old)


def read_body(rope: Rope, parts: list[bytes]) -> Body:
    """The body of a rope from the bytes of its segments."""
    return Body(joined(rope, parts), list(map(len, parts)))


def joined(rope: Rope, parts: list[bytes]) -> bytearray:
    """The JSON text of a rope from the bytes of its segments."""
    if not rope.is_list:
        return bytearray().join(parts)
    # The brackets go into the parts, so that the text is copied only once.
    framed = [*parts] or [b""]
    framed[0] = b"[" + framed[0]
    framed[-1] += b"]"
    return bytearray(b",").join(framed)


def chain_of(hashes: Iterable[bytes], running: bytes = b"") -> bytes:
    """The running digest over segments' hashes, continuing ``running``."""
    for digest in hashes:
        running = hashlib.sha256(running + digest).digest()
    return running


def numbers(runs: Iterable[Run], start: int = 0) -> list[int]:
    """The segment numbers of some runs, without the first ``start``."""
    ranges = (range(run.first, run.last + 1) for run in runs)
    return list(islice(chain.from_iterable(ranges), start, None))


# --- finding segments to keep ---------------------------------------------------------

_COMMA = ord(",")


def _begins_with(text: bytes, other: bytearray, size: int) -> bool:
    with memoryview(other) as whole, whole[:size] as beginning:
        return text.startswith(beginning)


def _pieces(body: Body, text: bytes, start: int, end: int) -> Iterator[Piece]:
    """``text[start:end]`` as kept old segments and new bytes, in order."""
    search = _SegmentSearch(body, text, start, end)
    search.match_front()
    search.match_back()
    search.match_middle()
    as_list = bool(start)
    position = start
    for index, at in search.matches:
        if at > position:
            gap = text[position : at - as_list]
            yield from _cut(gap, as_list=as_list, fine=FINE_ELEMENTS)
        yield index
        position = at + body.sizes[index] + as_list
    if position < end:
        yield from _cut(text[position:end], as_list=as_list, fine=FINE_ELEMENTS)


class _SegmentSearch:
    """Finds old segments in a new text, in order, on element boundaries."""

    def __init__(self, body: Body, text: bytes, start: int, end: int) -> None:
        self.text = text
        self.start, self.end = start, end
        self.separator = int(bool(start))
        self.parts = list(_parts(body, self.separator))
        self.front: list[tuple[int, int]] = []
        self.middle: list[tuple[int, int]] = []
        self.back: list[tuple[int, int]] = []

    @property
    def matches(self) -> list[tuple[int, int]]:
        return self.front + self.middle + self.back[::-1]

    def match_front(self) -> None:
        for index, part in enumerate(self.parts):
            if not self.text.startswith(part, self.start) or not self._fits(
                self.start, self.start + len(part)
            ):
                return
            self.front.append((index, self.start))
            self.start += len(part) + self.separator

    def match_back(self) -> None:
        for index in range(len(self.parts) - 1, len(self.front) - 1, -1):
            part = self.parts[index]
            at = self.end - len(part)
            if at < self.start or not self.text.startswith(part, at):
                return
            if not self._fits(at, self.end):
                return
            self.back.append((index, at))
            self.end = at - self.separator

    def match_middle(self) -> None:
        misses = 0
        for index in range(len(self.front), len(self.parts) - len(self.back)):
            part = self.parts[index]
            at = self.text.find(part, self.start, self.end) if len(part) > TINY else -1
            if at < 0 or not self._fits(at, at + len(part)):
                misses += 1
                if misses > MOST_MISSES:
                    return
                continue
            self.middle.append((index, at))
            self.start = at + len(part) + self.separator

    def _fits(self, at: int, stop: int) -> bool:
        """True if this part of a list begins and ends between elements."""
        if not self.separator:
            return True
        before = at == self.start or self.text[at - 1] == _COMMA
        return before and (stop == self.end or self.text[stop] == _COMMA)


def _parts(body: Body, separator: int) -> Iterator[bytes]:
    position = separator  # behind the bracket of a list
    for size in body.sizes:
        yield bytes(body.text[position : position + size])
        position += size + separator


# --- assembling the new rope ----------------------------------------------------------


class _Assembly:
    """A rope under construction, from kept segments and numbered new ones."""

    def __init__(self, old: Rope, body: Body, blocks: Blocks) -> None:
        self.old, self.body, self.blocks = old, body, blocks
        self.numbers = numbers(old.runs)
        self.parts = list(_parts(body, int(old.is_list)))
        known = len(body.hashes)
        body.hashes += (hashlib.sha256(part).digest() for part in self.parts[known:])
        self.runs: tuple[Run, ...] = ()
        self.segments: list[Segment] = []
        self.sizes: list[int] = []
        self.hashes: list[bytes] = []

    def keep(self, index: int) -> None:
        self._push(self.numbers[index], self.parts[index], self.body.hashes[index])

    def add(self, data: bytes, following: int) -> int:
        number = self.blocks.number(following)
        self.segments.append(Segment(number, data))
        self._push(number, data, hashlib.sha256(data).digest())
        return number + 1

    def _push(self, number: int, data: bytes, digest: bytes) -> None:
        self.runs = _extended(self.runs, number)
        self.sizes.append(len(data))
        self.hashes.append(digest)


def _assemble(assembly: _Assembly, pieces: list[Piece], text: bytes) -> Spliced:
    """The rope of a text that consists of these pieces."""
    old = assembly.old
    appended, replaced = old.next_appended, old.next_replaced
    grown_from = max(
        (i for i, piece in enumerate(pieces) if isinstance(piece, int)), default=-1
    )
    for position, piece in enumerate(pieces):
        if isinstance(piece, int):
            assembly.keep(piece)
        elif position > grown_from:
            appended = assembly.add(piece, appended)
        else:
            replaced = assembly.add(piece, replaced)
    digest = chain_of(assembly.hashes)
    rope = Rope(old.is_list, assembly.runs, len(text), digest, appended, replaced)
    body = Body(bytearray(text), assembly.sizes, assembly.hashes)
    return Spliced(rope, tuple(assembly.segments), body)


def _push(body: Body, data: bytes, *, as_list: bool) -> None:
    text = body.text
    if as_list:
        # The closing bracket gives way to a comma.
        text[-1:] = b"," if body.sizes else b""
        text += data
        text += b"]"
    else:
        text += data
    body.sizes.append(len(data))


def _extended(runs: tuple[Run, ...], number: int) -> tuple[Run, ...]:
    if runs:
        first, last = runs[-1]
        if last + 1 == number:
            return (*runs[:-1], Run(first, number))
    return (*runs, Run(number, number))


def _inner(text: bytes) -> tuple[bytes, bool]:
    return (text[1:-1], True) if is_list(text) else (text, False)


def _cut(data: bytes, *, as_list: bool, fine: int) -> Iterator[bytes]:
    """Pieces of about the segment size; of a list, pieces of whole elements."""
    if not as_list:
        for position in range(0, len(data), SEGMENT_SIZE):
            yield data[position : position + SEGMENT_SIZE]
        return
    if not fine and len(data) <= SEGMENT_SIZE:
        yield data
        return
    start = position = 0
    for count, size in enumerate(_element_sizes(data), 1):
        position += size + 1
        length = position - 1 - start
        if length >= SEGMENT_SIZE or (count <= fine and length >= TINY):
            yield data[start : position - 1]
            start = position
    if start < len(data):
        yield data[start:]


def _element_sizes(data: bytes) -> list[int]:
    """The sizes of comma-joined JSON elements, or one size if they are not whole."""
    try:
        elements = orjson.loads(b"[%b]" % data)
    except orjson.JSONDecodeError:
        # A kept segment matched inside an element, so this text is part of one.
        return [len(data)]
    sizes = [len(orjson.dumps(element)) for element in elements]
    exact = sum(sizes) + len(sizes) - 1 == len(data)
    return sizes if exact else [len(data)]
