"""The contents that the files of a list need, and the segments that hold them.

It is updated as files are added and removed, so that a save looks only at the changed
ones. Several files can have one content, and two contents can share some of their
segments.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from itertools import chain, pairwise
from operator import attrgetter, itemgetter
from typing import TypeVar

import msgspec

from holdfast._values.records import Run
from holdfast._values.stored_file import StoredFile, runs_of

T = TypeVar("T", bound=Hashable)

_digest = attrgetter("digest")
_first = itemgetter(0)


class SegmentUse(msgspec.Struct, frozen=True):
    """The contents of some files by digest, and the segments of these in order.

    ``copies`` and ``shared`` count the uses of a content or a segment beyond the first.
    ``size`` is that of all contents, each counted once.
    """

    contents: dict[bytes, StoredFile] = {}
    copies: dict[bytes, int] = {}
    runs: tuple[Run, ...] = ()
    shared: dict[int, int] = {}
    size: int = 0

    @classmethod
    def of(cls, files: Iterable[StoredFile]) -> SegmentUse:
        listed = list(files)
        contents = {stored.digest: stored for stored in listed}
        numbers = Counter(chain.from_iterable(map(_numbers, listed)))
        return cls(
            contents,
            _beyond_once(Counter(map(_digest, listed))),
            as_runs(numbers),
            _beyond_once(numbers),
            sum(stored.size for stored in contents.values()),
        )

    def find(self, digest: bytes) -> StoredFile | None:
        """A file that has a content, if all of its segments are in use."""
        found = self.contents.get(digest)
        if found is None or not all(holds(self.runs, n) for n in found.numbers):
            return None
        return found

    def changed(
        self, gone: Iterable[StoredFile], come: Iterable[StoredFile]
    ) -> SegmentUse:
        """The use after some files were removed and others added."""
        change = _Change(self)
        # Insert before deleting, so that a segment that only moves never has zero
        # users.
        for stored in come:
            change.take(stored)
        for stored in gone:
            change.drop(stored)
        return change.made()


class _Change:
    """A use under construction; the original is not changed."""

    def __init__(self, before: SegmentUse) -> None:
        self._before = before
        self._contents, self._copies = dict(before.contents), dict(before.copies)
        self._shared, self._size = dict(before.shared), before.size
        self._added: set[int] = set()
        self._freed: set[int] = set()

    def take(self, stored: StoredFile) -> None:
        if stored.digest in self._contents:
            _count(self._copies, stored.digest, 1)
        else:
            self._contents[stored.digest] = stored
            self._size += stored.size
        for number in stored.numbers:
            if number in self._added or holds(self._before.runs, number):
                _count(self._shared, number, 1)
            else:
                self._added.add(number)

    def drop(self, stored: StoredFile) -> None:
        if stored.digest in self._copies:
            _count(self._copies, stored.digest, -1)
        else:
            del self._contents[stored.digest]
            self._size -= stored.size
        for number in stored.numbers:
            if number in self._shared:
                _count(self._shared, number, -1)
            elif number in self._added:
                self._added.remove(number)
            else:
                self._freed.add(number)

    def made(self) -> SegmentUse:
        runs = list(self._before.runs)
        for number in self._freed:
            _take_out(runs, number)
        return SegmentUse(
            self._contents,
            self._copies,
            joined([*runs, *as_runs(self._added)]) if self._added else tuple(runs),
            self._shared,
            self._size,
        )


def _numbers(stored: StoredFile) -> Iterable[int]:
    runs = stored.runs
    # Most files have one segment.
    return runs[:1] if len(runs) == 2 and runs[1] == 1 else stored.numbers  # noqa: PLR2004


def _beyond_once(counts: Counter[T]) -> dict[T, int]:
    return {each: count - 1 for each, count in counts.items() if count > 1}


def _count(counts: dict[T, int], each: T, more: int) -> None:
    counts[each] = counts.get(each, 0) + more
    if not counts[each]:
        del counts[each]


# --- runs in order --------------------------------------------------------------------


def as_runs(numbers: Iterable[int]) -> tuple[Run, ...]:
    """Numbers in any order as runs."""
    found = runs_of(sorted(numbers))
    return tuple(Run(first, first + count - 1) for first, count in found)


def joined(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Runs in any order, sorted, with adjacent ones joined."""
    found: list[Run] = []
    for run in sorted(runs):
        if found and run.first <= found[-1].last + 1:
            found[-1] = Run(found[-1].first, max(run.last, found[-1].last))
        else:
            found.append(run)
    return tuple(found)


def holds(runs: Sequence[Run], number: int) -> bool:
    place = bisect_right(runs, number, key=_first)
    return place > 0 and number <= runs[place - 1].last


def _take_out(runs: list[Run], number: int) -> None:
    place = bisect_right(runs, number, key=_first) - 1
    first, last = runs[place]
    halves = (Run(first, number - 1), Run(number + 1, last))
    runs[place : place + 1] = [half for half in halves if half.first <= half.last]


def covering(runs: Sequence[Run], present: Sequence[Run], most: int) -> list[Run]:
    """Few runs that hold the needed ones, all of them present.

    Between them are the largest holes; smaller ones stay, because a run would cost more
    in each checkpoint than what they hold costs once.
    """
    holes = [
        (other.first - one.last - 1, place)
        for place, (one, other) in enumerate(pairwise(runs), 1)
    ]
    is_open = {
        place
        for (size, place) in holes
        if not _spans(present, runs[place - 1].last + 1, size)
    }
    free = sorted(((s, p) for s, p in holes if p not in is_open), reverse=True)
    is_open |= {place for _, place in free[: max(0, most - 1 - len(is_open))]}
    found: list[Run] = []
    for place, run in enumerate(runs):
        if place == 0 or place in is_open:
            found.append(run)
        else:
            found[-1] = Run(found[-1].first, run.last)
    return found


def _spans(runs: Sequence[Run], first: int, count: int) -> bool:
    """True if one of the runs has all of these numbers."""
    return any(run.first <= first and first + count - 1 <= run.last for run in runs)
