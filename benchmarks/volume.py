"""The entry of `make volume`: what grows with the number of threads and checkpoints.

``python -m benchmarks.volume --threads 2000 --checkpoints 2000`` is a small run.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from benchmarks import volume_stores as stores
from benchmarks.contest.units import duration, volume
from benchmarks.environment import environment
from benchmarks.measure import Bench, bench
from benchmarks.report import Row, comparison, failed, times
from benchmarks.server import private_server
from benchmarks.volume_calls import Measurement, Target

ROOT = Path(__file__).resolve().parent.parent
THREADS = (100_000, 1_000_000)
CHECKPOINTS = 1_000_000
FEW = 1000
# The goals in seconds are for this many; a smaller run has the same.
LEAST = 100_000
MEMORY = 300_000_000
MOST_SECONDS = 3600


def main(arguments: Sequence[str] | None = None) -> int:
    """Build, measure, print; 1 if something could not be measured."""
    options = _options(arguments)
    with bench(quick=False) as run, contextlib.ExitStack() as stack:
        for name, fact in environment(run.folder).items():
            print(f"{name}: {fact}")
        url = None
        if "postgres" in options.only:
            url = stack.enter_context(private_server())
        for count in options.threads or THREADS:
            _measure_threads(run, options.only, url, count)
        _measure_history(run, options.only, url, options.checkpoints)
    print("", comparison(run.rows), "", *run.notes, sep="\n")
    return int(any(row.problem for row in run.rows))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks volume", description=__doc__
    )
    parser.add_argument(
        "--threads", type=int, action="append", help="how many; may be repeated"
    )
    parser.add_argument(
        "--checkpoints", type=int, default=CHECKPOINTS, help="of one long thread"
    )
    parser.add_argument(
        "--only",
        choices=["sqlite", "postgres"],
        nargs="+",
        default=["sqlite", "postgres"],
    )
    return parser.parse_args(arguments)


@dataclass(slots=True)
class Subject:
    """A large store beside a small one; what was measured, and the highest peak."""

    bench: Bench
    name: str
    large: Target
    small: Target
    peak: int = 0
    largest: str = ""
    found: dict[str, float] = field(default_factory=dict)

    def seconds(self, call: str) -> float:
        """What a call takes, measured once in a process of its own."""
        if call not in self.found:
            [self.found[call]] = self._run(call, self.large)
        return self.found[call]

    def both(self, call: str) -> tuple[float, float]:
        """What a call takes in the large and in the small store, in turns."""
        large, small = self._run(call, self.large, self.small)
        return large, small

    def _run(self, call: str, *targets: Target) -> list[float]:
        measured = _run(call, targets)
        if measured.peak > self.peak:
            self.peak, self.largest = measured.peak, call
        return measured.seconds

    def row(self, work: str, measure: Callable[[], Row]) -> None:
        """Add a row; what cannot be measured is a row too."""
        print(f"  {self.name}: {work} …", end=" ", flush=True)
        try:
            row = measure()
        except subprocess.SubprocessError as error:
            row = failed(f"{self.name}: {work}", _reason(error))
        self.bench.rows.append(row)
        print(f"{row.measured} ({row.ratio:.2f} x) {row.verdict}", flush=True)

    def flat(self, work: str, call: str, few: str, limit: float = 1.2) -> None:
        """A row for a call that must not take longer in the large store."""

        def measure() -> Row:
            large, small = self.both(call)
            text = times(large, small, few)
            return Row(f"{self.name}: {work}", text, large / small, limit)

        self.row(work, measure)

    def within(self, work: str, call: str, goal: float) -> None:
        """A row for a call that has to be done in so many seconds."""

        def measure() -> Row:
            text = f"{duration(self.seconds(call))}; goal {duration(goal)}"
            return Row(f"{self.name}: {work}", text, self.seconds(call) / goal, 1)

        self.row(work, measure)

    def against(self, work: str, call: str, other: str, limit: float) -> None:
        """A row for a call beside another one on the same store."""

        def measure() -> Row:
            a, b = self.seconds(call), self.seconds(other)
            return Row(f"{self.name}: {work}", times(a, b, other), a / b, limit)

        self.row(work, measure)

    def memory(self) -> None:
        """A row for the highest peak of all calls so far."""
        text = f"{volume(self.peak)} ({self.largest}); goal {volume(MEMORY)}"
        row = Row(f"{self.name}: peak memory of a process", text, self.peak / MEMORY, 1)
        self.bench.rows.append(row)


def _measure_threads(
    run: Bench, backends: list[str], url: str | None, count: int
) -> None:
    with _two_stores(run, "threads", (count, FEW)) as (large, small):
        for backend, target, few in _targets(backends, url, large, small):
            subject = Subject(run, f"{backend}, {count:,} threads", target, few)
            _measure_calls(subject, count)


def _measure_calls(subject: Subject, count: int) -> None:
    few = f"of {FEW:,}"
    count = max(count, LEAST)
    scale = count / LEAST
    subject.flat("first page of threads()", "page", few)
    subject.flat("first page of conversations.list()", "conversations", few)
    subject.against("threads(metadata=) without a match", "metadata", "count", 2)
    subject.within("stats()", "stats", 0.3 * scale)
    subject.within("verify()", "verify", 2.4 * scale)
    subject.within("prune(last=1), dry run", "dry prune", count / 50_000)
    subject.within("prune(last=1), nothing to remove", "prune", count / 50_000)
    subject.within("first search", "first search", count / 25_000)
    _run("first search", [subject.small])
    subject.flat("a search, rare word", "rare", few)
    subject.flat("a search, common word", "common", few)
    subject.memory()


def _measure_history(
    run: Bench, backends: list[str], url: str | None, count: int
) -> None:
    with _two_stores(run, "history", (count, FEW)) as (large, small):
        for backend, target, few in _targets(backends, url, large, small):
            name = f"{backend}, one thread of {count:,} checkpoints"
            subject = Subject(run, name, target, few)
            subject.flat("a page of history()", "history", f"of {FEW:,}", 1.5)
            subject.flat("append()", "append", f"of {FEW:,}")
            least = max(count, LEAST)
            subject.within("stats()", "stats", 0.3 * least / LEAST)
            subject.within("verify()", "verify", 2.4 * least / LEAST)
            subject.within("prune(last=1), dry run", "dry prune", least / 50_000)
            # As many a second as a file takes saves.
            subject.within("copy_to() a file", "copy", least / 10_000)
            subject.within("prune(last=1), all but one", "prune", least / 10_000)
            subject.memory()


# --- stores ---------------------------------------------------------------------------


@contextlib.contextmanager
def _two_stores(
    run: Bench, kind: str, sizes: tuple[int, int]
) -> Iterator[tuple[str, str]]:
    """Files with so many threads or checkpoints, gone afterwards."""
    with run.place() as folder:
        paths = [os.path.join(folder, f"{kind}_{size}.db") for size in sizes]
        for path, size in zip(paths, sizes, strict=True):
            start = time.monotonic()
            if kind == "threads":
                asyncio.run(stores.fill_threads(path, size))
            else:
                stores.fill_history(path, size)
            print(f"{size:,} {kind} in a file: {time.monotonic() - start:.0f} s")
        yield paths[0], paths[1]


def _targets(
    backends: list[str], url: str | None, large: str, small: str
) -> Iterator[tuple[str, Target, Target]]:
    """The server first: its rows are copied from the files as they were filled."""
    if url is not None:
        start = time.monotonic()
        schemas = [Path(path).stem for path in (large, small)]
        for path, schema in zip((large, small), schemas, strict=True):
            stores.copy_rows(path, url, schema)
        print(f"copied to the server: {time.monotonic() - start:.0f} s")
        yield "PostgreSQL", Target(url, schemas[0]), Target(url, schemas[1])
        for schema in schemas:
            stores.drop(url, schema)
    if "sqlite" in backends:
        yield "SQLite", Target(large, ""), Target(small, "")


def _run(call: str, targets: Sequence[Target]) -> Measurement:
    places = [place for target in targets for place in target]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.volume_calls", call, *places],
        cwd=ROOT,
        capture_output=True,
        check=True,
        timeout=MOST_SECONDS,
    )
    return msgspec.json.decode(done.stdout, type=Measurement)


def _reason(error: subprocess.SubprocessError) -> str:
    told: bytes | None = getattr(error, "stderr", None)
    lines = (told or b"").decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else str(error)
