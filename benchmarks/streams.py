"""What an event costs in a long stream: to append it, and to read it."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from itertools import count

import holdfast
from benchmarks.measure import Bench, alternate
from benchmarks.report import Row, times

FEW = 10
EVENT = {"kind": "progress", "text": "a step of a task, as agents tell it " * 4}


def streams(bench: Bench) -> None:
    """A long stream against a short one, as it grew and after it was trimmed."""
    many = bench.amount(100_000, 10_000)
    with bench.place() as folder:
        stores = [_opened(folder, name) for name in ("long", "short")]
        long, short = (store.stream("events") for store in stores)
        for stream, number in ((long, many), (short, FEW)):
            for _ in range(number):
                stream.append(EVENT)
        last = long.last
        _compare(bench, f"append of an event at {many:,} against at {FEW}", long, short)
        reads = [partial(s.events, limit=10) for s in (long, short)]
        _row(bench, f"10 events of {many:,} against of {FEW}", *reads)
        long.trim(before=last)
        _compare(bench, f"append after {many:,} events were trimmed", long, short)
        for store in stores:
            store.close()


def _opened(folder: str, name: str) -> holdfast.Store:
    return holdfast.open(os.path.join(folder, f"{name}.db"), durability="normal")


def _compare(
    bench: Bench, work: str, long: holdfast.Stream, short: holdfast.Stream
) -> None:
    keys = count()

    def append(stream: holdfast.Stream) -> None:
        stream.append(EVENT, key=f"{work} {next(keys)}")

    _row(bench, work, partial(append, long), partial(append, short))


def _row(
    bench: Bench, work: str, ours: Callable[[], object], other: Callable[[], object]
) -> None:
    pair = alternate(ours, other, rounds=bench.amount(100, 40))
    a, b = pair.medians
    bench.rows.append(Row(work, times(a, b, "the short one"), a / b, 1.2))
