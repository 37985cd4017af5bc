"""One measurement of large stores, in a process of its own: its peak memory counts.

``python -m benchmarks.volume_calls CALL URL SCHEMA …`` prints a line of JSON. Of two
stores, the calls take turns.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

import apsw
import msgspec
import psycopg

import holdfast
from benchmarks.inner.stores import page_checksums
from benchmarks.measure import Work, timed
from benchmarks.volume_stores import COMMON, LONG, RARE
from holdfast.retention import Retention

COUNT = "select count(*) from {}thread where deleted_at is null and head is not null"
HITS = 20


class Measurement(msgspec.Struct, frozen=True):
    """Seconds of a call on each store, and the most memory the process ever had."""

    seconds: list[float]
    peak: int


class Target(NamedTuple):
    """A file, or a schema of a server."""

    url: str
    schema: str

    def open(self) -> holdfast.Store:
        """The store, as a service would open it."""
        if not self.schema:
            return holdfast.open(self.url)
        # A pass over a million rows may take longer than a call usually does.
        return holdfast.open(self.url, schema=self.schema, busy_timeout=600)


class Call(NamedTuple):
    """What is called, and how often after a first time; 0: only once."""

    work: Callable[[holdfast.Store], object]
    times: int = 0

    def measured(self, stores: Sequence[holdfast.Store]) -> list[float]:
        """Seconds on each store, most of the time."""
        if not self.times:
            return [timed(partial(self.work, store)) for store in stores]
        samples: list[list[float]] = [[] for _ in stores]
        for store in stores:
            self.work(store)
        for _ in range(self.times):
            for store, found in zip(stores, samples, strict=True):
                found.append(timed(partial(self.work, store)))
        return [median(found) for found in samples]


def _count(target: Target) -> float:
    """One bare pass over the threads."""
    if target.schema:
        with psycopg.connect(target.url) as server:
            statement = COUNT.format(f"{target.schema}.").encode()
            return _median(lambda: server.execute(statement).fetchall())
    file = apsw.Connection(target.url, vfs=page_checksums())
    return _median(lambda: file.execute(COUNT.format("")).fetchall())


def _median(work: Work) -> float:
    work()
    return median(timed(work) for _ in range(5))


def _verify(store: holdfast.Store) -> None:
    found = store.verify()
    assert found.ok, found.problems[:3]


def _copy(store: holdfast.Store) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        holdfast.open(f"{folder}/copy.db", durability="normal") as other,
    ):
        store.copy_to(other)


ONE = Retention(last=1)
CALLS: dict[str, Call] = {
    "page": Call(lambda s: s.threads(), 30),
    "conversations": Call(lambda s: s.conversations.list(), 30),
    "metadata": Call(lambda s: s.threads(metadata={"ticket": -1}), 5),
    "stats": Call(lambda s: s.stats(), 3),
    "verify": Call(_verify),
    "dry prune": Call(lambda s: s.prune(ONE, dry_run=True)),
    "prune": Call(lambda s: s.prune(ONE)),
    "copy": Call(_copy),
    "first search": Call(lambda s: s.search(RARE, limit=HITS)),
    "rare": Call(lambda s: s.search(RARE, limit=HITS), 10),
    "common": Call(lambda s: s.search(COMMON, limit=HITS), 10),
    "history": Call(lambda s: s.thread(LONG).history(20), 30),
    "append": Call(lambda s: s.thread(LONG).append(messages=["x"]), 100),
}


def main(call: str, *places: str) -> None:
    """Measure, and print it."""
    targets = [Target(*pair) for pair in zip(places[::2], places[1::2], strict=True)]
    if call == "count":
        seconds = [_count(target) for target in targets]
    else:
        with contextlib.ExitStack() as stack:
            stores = [stack.enter_context(target.open()) for target in targets]
            seconds = CALLS[call].measured(stores)
    print(msgspec.json.encode(Measurement(seconds, _peak())).decode())


def _peak() -> int:
    """Of this program; what `getrusage` gives begins with the peak of its parent."""
    [line] = [
        line
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith("VmHWM")
    ]
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    main(*sys.argv[1:])
