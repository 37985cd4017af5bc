"""Timing: what is compared takes turns, and medians are what is reported."""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import mean, median
from typing import Literal, NamedTuple

from benchmarks.contest.units import duration
from benchmarks.report import Row, Series, times

Work = Callable[[], object]
Durability = Literal["full", "normal"]
DURABILITIES: tuple[Durability, ...] = ("normal", "full")


@dataclass(slots=True)
class Bench:
    """One run: where its files go, how long it may take, what it found."""

    folder: str
    quick: bool = False
    rows: list[Row] = field(default_factory=list)
    series: list[Series] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    syncs: dict[str, str] = field(default_factory=dict)

    def amount(self, full: int, quick: int) -> int:
        """How much to do in this run."""
        return quick if self.quick else full

    @contextlib.contextmanager
    def place(self) -> Iterator[str]:
        """A folder for one measurement; gone afterwards, so that disks stay free."""
        path = tempfile.mkdtemp(dir=self.folder)
        # What was imported and made before is no garbage: do not look at it again.
        gc.collect()
        gc.freeze()
        try:
            yield path
        finally:
            gc.unfreeze()
            shutil.rmtree(path)


@contextlib.contextmanager
def bench(*, quick: bool) -> Iterator[Bench]:
    """A run with a folder of its own, under TMPDIR."""
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder:
        yield Bench(folder, quick=quick)


def timed(work: Work) -> float:
    """Seconds for one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def worked(work: Work) -> float:
    """Seconds of processor time for one call, in all threads.

    For a single call that waits for nothing: beside other programs its time on the
    clock says more about them.
    """
    start = time.process_time()
    work()
    return time.process_time() - start


def worked_in_all(work: Work) -> float:
    """As `worked`, with the processes that the call has started and waited for."""
    start = _spent()
    work()
    return _spent() - start


def _spent() -> float:
    import resource  # Windows lacks it

    own = resource.getrusage(resource.RUSAGE_SELF)
    others = resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


class Cost(NamedTuple):
    """Seconds that passed, and seconds that this process was at work."""

    wall: float
    cpu: float


def cost_of(work: Work) -> Cost:
    """What one call costs; the processor's time is that of all threads."""
    cpu = time.process_time()
    wall = timed(work)
    return Cost(wall, time.process_time() - cpu)


class Pair(NamedTuple):
    """Seconds of ours and of what it is compared with."""

    ours: list[float]
    reference: list[float]

    @property
    def medians(self) -> tuple[float, float]:
        """What one call takes most of the time."""
        return median(self.ours), median(self.reference)

    @property
    def means(self) -> tuple[float, float]:
        """What a call takes with SQLite moving its log into the file now and then."""
        return mean(self.ours), mean(self.reference)

    def text(self, name: str) -> str:
        """Both, for the table."""
        a, b = map(duration, self.means)
        return f"{times(*self.medians, name)} (means {a}, {b})"


def alternate(ours: Work, reference: Work, *, rounds: int, block: int = 1) -> Pair:
    """Both measured in turns: ours, reference, reference, ours, …

    Whatever else the machine does in that time happens to both, and neither is always
    the one that waits for what the disk did before.
    """
    pair = Pair([], [])
    sides = [(ours, pair.ours), (reference, pair.reference)]
    for _ in range(rounds):
        for work, samples in sides:
            samples.extend(timed(work) for _ in range(block))
        sides.reverse()
    return pair


def percentile(samples: list[float], percent: int) -> float:
    """The nearest sample that is not below so many of the others."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


def disk_size(path: str) -> int:
    """The bytes of a closed database, with a log that was left beside it."""
    files = (path, f"{path}-wal")
    return sum(os.path.getsize(file) for file in files if os.path.exists(file))
