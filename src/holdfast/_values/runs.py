"""Runs of segment numbers: counting them, and taking parts of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from holdfast._values.records import Run

# An empty run separates the segments of a state from those of its files.
BEFORE_FILES = Run(1, 0)


def state_runs(runs: Sequence[Run]) -> Sequence[Run]:
    """The runs of a checkpoint without those of its files."""
    return runs[: runs.index(BEFORE_FILES)] if BEFORE_FILES in runs else runs


def count_segments(runs: Iterable[Run]) -> int:
    return sum(run.last - run.first + 1 for run in runs)


def first_runs(runs: Iterable[Run], count: int) -> Iterator[Run]:
    """The runs of the first ``count`` segments, or of all if there are fewer."""
    for run in runs:
        if count <= 0:
            return
        yield Run(run.first, min(run.last, run.first + count - 1))
        count -= run.last - run.first + 1


def last_runs(runs: Sequence[Run], skip: int, count: int) -> list[Run]:
    """The runs of the ``count`` segments before the last ``skip``."""
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


def divided(runs: Iterable[Run], size: int) -> Iterator[Run]:
    """The same segments in runs of at most ``size``."""
    for run in runs:
        for first in range(run.first, run.last + 1, size):
            yield Run(first, min(first + size - 1, run.last))
