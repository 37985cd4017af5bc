"""What an append costs: to a long list, to a store just opened, beside bare SQLite."""

from __future__ import annotations

import os
from functools import partial
from itertools import count, cycle
from statistics import median
from typing import Any

import apsw

import holdfast
from benchmarks.contest.units import volume
from benchmarks.contest.workload import Writer
from benchmarks.measure import DURABILITIES, Bench, Durability, Pair, alternate, timed
from benchmarks.peers import plain_database
from benchmarks.report import Row, times

SHORT, LONG = 10, 10_000


def append(bench: Bench) -> None:
    """Appending to a long list against a short one, and against bare SQLite."""
    for durability in DURABILITIES:
        _append_long(bench, durability)
    _append_cold(bench)
    _append_bare(bench)


def _append_long(bench: Bench, durability: Durability) -> None:
    with bench.place() as folder:
        store = holdfast.open(os.path.join(folder, "a.db"), durability=durability)
        rounds = bench.amount(100, 40)
        long, *shorts = _populate(store, rounds)
        pair = Pair([], [])
        writer = Writer(2)
        for short in shorts:
            # Six appends to each short thread: it must not become a long one.
            added = writer.turn()
            six = alternate(
                partial(long.append, messages=added),
                partial(short.append, messages=added),
                rounds=6,
            )
            pair.ours.extend(six.ours)
            pair.reference.extend(six.reference)
        store.close()
    ours, reference = pair.medians
    work = f"append at {LONG:,} messages against at {SHORT}, {durability}"
    measured = times(ours, reference, f"at {SHORT}")
    bench.rows.append(Row(work, measured, ours / reference, 1.2))


def _populate(store: holdfast.Store, number: int) -> list[holdfast.Thread]:
    """A long thread and short ones.

    SQLite is quicker at the end of a table than in its middle, so one more thread goes
    behind them all: only the length of the lists shall differ.
    """
    writer = Writer()
    sizes = {
        "long": LONG,
        **{f"short-{n}": SHORT for n in range(number)},
        "last": SHORT,
    }
    for name, size in sizes.items():
        messages = [message for _ in range(size // 2) for message in writer.turn()]
        store.thread(name).save({"messages": messages})
    return [store.thread(name) for name in sizes if name != "last"]


def _append_cold(bench: Bench) -> None:
    """The first append after opening, which knows nothing of what is there."""
    with bench.place() as folder:
        path, writer = os.path.join(folder, "a.db"), Writer(2)
        rounds = bench.amount(100, 30)
        with holdfast.open(path) as store:
            _populate(store, rounds)

        def first(name: str) -> float:
            with holdfast.open(path, durability="normal") as store:
                return timed(partial(store.thread(name).append, messages=writer.turn()))

        pairs = [(first("long"), first(f"short-{n}")) for n in range(rounds)]
    ours, reference = (median(samples) for samples in zip(*pairs, strict=True))
    work = f"the first append after opening, at {LONG:,} against at {SHORT}, normal"
    measured = times(ours, reference, f"at {SHORT}")
    bench.rows.append(Row(work, measured, ours / reference))


def _append_bare(bench: Bench) -> None:
    with bench.place() as folder:
        path, writer = os.path.join(folder, "a.db"), Writer()
        store = holdfast.open(path, durability="normal")
        thread = store.thread("chat")
        turns = [writer.turn() for _ in range(200)]
        for turn in turns:
            thread.append(messages=turn)
        bare = BareTransaction(path, os.path.join(folder, "bare.db"))
        supply = cycle(turns)
        pair = alternate(
            lambda: thread.append(messages=next(supply)),
            bare,
            rounds=bench.amount(100, 40),
            block=20,
        )
        bare.close()
        store.close()
    work = f"append, normal, against a bare transaction of its two rows ({bare.sizes})"
    a, b = pair.medians
    bench.rows.append(Row(work, pair.text("bare"), a / b, 3.5))


class BareTransaction:
    """Writes the two rows of a store's last append again, and nothing else.

    The tables have the same columns, but no further index, and no checksummed pages.
    """

    def __init__(self, source: str, path: str) -> None:
        self._db = plain_database(path, "NORMAL")
        origin = apsw.Connection(source, flags=apsw.SQLITE_OPEN_READONLY)
        self._inserts = [self._copy(origin, name) for name in ("segment", "checkpoint")]
        origin.close()
        self._key = count(1)

    @property
    def sizes(self) -> str:
        """The bytes of both rows."""
        return " + ".join(
            volume(sum(len(v) if isinstance(v, bytes | str) else 8 for v in values))
            for _, values in self._inserts
        )

    def __call__(self) -> None:
        db, key = self._db, next(self._key)
        db.execute("begin immediate")
        for statement, values in self._inserts:
            db.execute(statement, (key, *values))
        db.execute("commit")

    def close(self) -> None:
        self._db.close()

    def _copy(self, origin: apsw.Connection, name: str) -> tuple[str, tuple[Any, ...]]:
        [(schema,)] = origin.execute(
            "select sql from sqlite_schema where type = 'table' and name = ?", (name,)
        ).fetchall()
        assert isinstance(schema, str)
        self._db.execute(schema)
        # Both tables have an integer primary key in front; the bare rows count anew.
        [row] = origin.execute(
            f"select * from {name} order by 1 desc limit 1"
        ).fetchall()
        marks = ", ".join("?" * len(row))
        return f"insert into {name} values ({marks})", row[1:]
