"""The end of a long list: reading it without the rest, and removing it.

Pure: segments and their bytes in, elements and ropes out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import cast

from holdfast._values import codec
from holdfast._values.rope import (
    MOST_RUNS,
    Blocks,
    Body,
    Rope,
    Spliced,
    append,
    chain_of,
    write,
)
from holdfast._values.runs import first_runs
from holdfast.errors import Corrupt


class Tail:
    """The elements of a list, the last one first, decoded only as far as needed.

    ``parts`` are the bytes of its segments, the last one first.
    """

    def __init__(self, parts: Iterable[bytes]) -> None:
        self._parts = iter(parts)
        self._found: list[object] = []
        # The numbers of elements and of segments that were decoded together.
        self._groups: list[tuple[int, int]] = []

    @classmethod
    def of(cls, elements: Sequence[object]) -> Tail:
        """The tail of a list that has been decoded already."""
        tail = cls(())
        tail._found = list(reversed(elements))
        return tail

    def __iter__(self) -> Iterator[object]:
        """The elements, newest first."""
        return self.after(0)

    def after(self, count: int) -> Iterator[object]:
        """The elements before the last ``count``, newest first."""
        while self._reaches(count + 1):
            yield self._found[count]
            count += 1

    def newest(self, count: int) -> list[object]:
        """The last ``count`` elements, or all if there are fewer, in their order."""
        return list(islice(self, max(count, 0)))[::-1]

    def boundary(self, count: int) -> tuple[int, list[object]]:
        """The position at which to cut the last ``count`` elements off.

        The number of segments at the end that hold them, and the elements that these
        segments have before them.
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
        """Decode one more segment, with the segments before it that it continues."""
        taken = b""
        for number, part in enumerate(self._parts, 1):
            taken = b"%b,%b" % (part, taken) if taken else part
            elements = elements_of(taken)
            if elements is not None:
                self._found += reversed(elements)
                self._groups.append((len(elements), number))
                return True
        if taken:
            raise Corrupt("a stored list", "its end cannot be read as elements")
        return False


def elements_of(text: bytes) -> list[object] | None:
    """The elements of comma-joined JSON, ``None`` if it begins inside an element.

    After edits a segment may begin anywhere. Text from the middle of an element closes
    a bracket or a quote that it has not opened, so it is never valid by itself.
    """
    try:
        return cast("list[object]", codec.decode(b"[%b]" % text))
    except Corrupt:
        return None


def parts_backwards(body: Body) -> Iterator[bytes]:
    """The bytes of a list's segments, the last one first."""
    end = len(body.text) - 1
    for size in reversed(body.sizes):
        yield bytes(body.text[end - size : end])
        end -= size + 1


def shortened(
    old: Rope, body: Body, segments: int, added: bytes, blocks: Blocks
) -> Spliced:
    """A list without its last segments, and with elements given as comma-joined JSON.

    At least one segment must remain. ``body`` is changed in place.
    """
    stay = len(body.sizes) - segments
    _cut(body, stay)
    chain = chain_of(body.hashes)
    rope = Rope(
        is_list=True,
        runs=tuple(first_runs(old.runs, stay)),
        size=len(body.text),
        chain=chain,
        next_appended=old.next_appended,
        next_replaced=old.next_replaced,
    )
    spliced = append(rope, body, added, blocks) if added else Spliced(rope, (), body)
    if len(spliced.rope.runs) > MOST_RUNS:
        return write(bytes(body.text), blocks, old)
    return spliced


def _cut(body: Body, stay: int) -> None:
    """Keep only the first segments, and complete their hashes."""
    assert stay > 0
    del body.sizes[stay:], body.hashes[stay:]
    body.text[sum(body.sizes) + stay :] = b"]"
    known = len(body.hashes)
    start = sum(body.sizes[:known]) + known + 1
    for size in body.sizes[known:]:
        body.hashes.append(hashlib.sha256(body.text[start : start + size]).digest())
        start += size + 1
