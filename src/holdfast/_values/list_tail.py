"""The end of a long list: reading it without the rest, and cutting it off.

Pure: segments and their bytes in, elements and ropes out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import islice
from typing import cast

from holdfast._values import codec
from holdfast._values.records import Run
from holdfast._values.rope import (
    MOST_RUNS,
    Blocks,
    Body,
    Rope,
    Spliced,
    append,
    chain_of,
    joined,
    write,
)
from holdfast.errors import Corrupt


class Tail:
    """The elements of a list from its last one on, decoded as far as they are needed.

    ``parts`` are the bytes of its segments, from the last one on.
    """

    def __init__(self, parts: Iterable[bytes]) -> None:
        self._parts = iter(parts)
        self._found: list[object] = []
        # How many elements and how many segments were taken together.
        self._groups: list[tuple[int, int]] = []

    @classmethod
    def of(cls, elements: Sequence[object]) -> Tail:
        """The tail of a list that is decoded already."""
        tail = cls(())
        tail._found = list(reversed(elements))
        return tail

    def __iter__(self) -> Iterator[object]:
        """The elements, newest first."""
        return self.after(0)

    def after(self, count: int) -> Iterator[object]:
        """The elements in front of the last few, newest first."""
        while self._reaches(count + 1):
            yield self._found[count]
            count += 1

    def newest(self, count: int) -> list[object]:
        """The last few elements, or as many as there are, in their order."""
        return list(islice(self, max(count, 0)))[::-1]

    def boundary(self, count: int) -> tuple[int, list[object]]:
        """Where a list without its last few elements ends.

        So many segments at the end hold them, together with these elements in front.
        """
        self._reaches(count)
        elements = segments = 0
        for size, parts in self._groups:
            if elements >= count:
                break
            elements, segments = elements + size, segments + parts
        return segments, self._found[count:elements][::-1]

    def _reaches(self, count: int) -> bool:
        while len(self._found) < count:
            if not self._take():
                return False
        return True

    def _take(self) -> bool:
        """Decode one more segment, together with those it can only be read with."""
        taken = b""
        for number, part in enumerate(self._parts, 1):
            taken = b"%b,%b" % (part, taken) if taken else part
            elements = elements_of(taken)
            if elements is not None:
                self._found += reversed(elements)
                self._groups.append((len(elements), number))
                return True
        if taken:
            raise Corrupt("a stored list", "its end is no list")
        return False


def elements_of(text: bytes) -> list[object] | None:
    """The elements of comma-joined JSON, none if it begins inside of one.

    After edits a segment may end anywhere. What begins inside an element closes what it
    has not opened, so that it cannot be mistaken for elements of its own.
    """
    try:
        return cast("list[object]", codec.decode(b"[%b]" % text))
    except Corrupt:
        return None


def parts_backwards(body: Body) -> Iterator[bytes]:
    """The bytes of a list's segments, from the last one on."""
    end = len(body.text)
    for size in reversed(body.sizes):
        yield bytes(body.text[end - size : end])
        end -= size + 1


def last_runs(runs: Sequence[Run], skip: int, count: int) -> list[Run]:
    """The runs of some segments in front of the last few."""
    found: list[Run] = []
    for run in reversed(runs):
        last = run.last - skip
        skip = max(0, run.first - last - 1)
        if last < run.first:
            continue
        first = max(run.first, last - count + 1)
        found.append(Run(first, last))
        count -= last - first + 1
        if not count:
            break
    return found[::-1]


def shortened(
    old: Rope, body: Body, segments: int, added: bytes, blocks: Blocks
) -> Spliced:
    """A list without its last segments, then more elements as comma-joined JSON.

    At least one segment must stay. ``body`` is changed in place.
    """
    stay = len(body.sizes) - segments
    _cut(body, stay)
    chain = chain_of(body.hashes)
    rope = Rope(
        is_list=True,
        runs=tuple(_first_runs(old.runs, stay)),
        size=len(body.text) + 2,
        chain=chain,
        next_appended=old.next_appended,
        next_replaced=old.next_replaced,
    )
    spliced = append(rope, body, added, blocks) if added else Spliced(rope, (), body)
    if len(spliced.rope.runs) > MOST_RUNS:
        return write(bytes(joined(body, as_list=True)), blocks, old)
    return spliced


def _cut(body: Body, stay: int) -> None:
    """Leave the first segments only, and have the hashes of all of them."""
    assert stay > 0
    del body.sizes[stay:], body.hashes[stay:]
    del body.text[sum(body.sizes) + stay - 1 :]
    known = len(body.hashes)
    start = sum(body.sizes[:known]) + known
    for size in body.sizes[known:]:
        body.hashes.append(sha256(body.text[start : start + size]).digest())
        start += size + 1


def _first_runs(runs: Sequence[Run], count: int) -> Iterator[Run]:
    for run in runs:
        if count <= 0:
            return
        yield Run(run.first, min(run.last, run.first + count - 1))
        count -= run.last - run.first + 1
