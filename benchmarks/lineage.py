"""What a fork and a page of history cost in a thread that is long."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import count

import holdfast
from benchmarks.contest.units import volume
from benchmarks.contest.workload import Message, growing
from benchmarks.measure import DURABILITIES, Bench, Durability, alternate
from benchmarks.report import Row, times


def fork(bench: Bench) -> None:
    """Forking a large thread against a small one."""
    size = bench.amount(100, 20) * 1_000_000
    with bench.place() as folder:
        large, small = (os.path.join(folder, name) for name in ("l.db", "s.db"))
        _grow(large, size)
        _grow(small, 1000)
        for durability in DURABILITIES:
            _fork(bench, large, small, durability, size)


def _grow(path: str, size: int) -> None:
    turns = [turn.added for turn in growing(500)]
    with holdfast.open(path, durability="normal") as store:
        thread = store.thread("main")
        written = 0
        while written < size:
            saved = thread.append(messages=_bulk(turns, written, size - written))
            written = saved.size


def _bulk(turns: list[list[Message]], salt: int, most: int) -> list[Message]:
    """Up to a few hundred messages, told apart from those of other calls."""
    chosen = [message for turn in turns for message in turn]
    if most < 2000:
        chosen = [{"role": "user", "content": chosen[0]["content"] * 2}]
    return [{**m, "content": f"{salt} {m['content']}"} for m in chosen]


def _fork(
    bench: Bench, large: str, small: str, durability: Durability, size: int
) -> None:
    names = (f"{durability}-{number}" for number in count())
    with (
        holdfast.open(large, durability=durability) as a,
        holdfast.open(small, durability=durability) as b,
    ):
        ours, reference = alternate(
            lambda: a.thread("main").fork(next(names)),
            lambda: b.thread("main").fork(next(names)),
            rounds=bench.amount(200, 60),
        ).medians
    work = f"fork of a {volume(size)} thread against a 1 kB thread, {durability}"
    bench.rows.append(Row(work, times(ours, reference, "1 kB"), ours / reference, 1.2))


PAGE = 20


def history(bench: Bench) -> None:
    """A page of a long history against one of a short history."""
    many, few = bench.amount(100_000, 10_000), 100
    with bench.place() as folder:
        long = _open_history(os.path.join(folder, "l.db"), many)
        short = _open_history(os.path.join(folder, "s.db"), few)
        for where in ("newest", "middle"):
            ours, reference = alternate(
                _page(long, where, many),
                _page(short, where, few),
                rounds=bench.amount(60, 30),
                block=5,
            ).medians
            work = (
                f"{where} history page of {PAGE} in {many:,} checkpoints against {few}"
            )
            measured = times(ours, reference, f"of {few}")
            bench.rows.append(Row(work, measured, ours / reference, 1.5))
        long.close()
        short.close()


def _open_history(path: str, checkpoints: int) -> holdfast.Store:
    store = holdfast.open(path, durability="normal")
    thread = store.thread("main")
    for number in range(checkpoints):
        thread.save({"step": number})
    return store


def _page(store: holdfast.Store, where: str, size: int) -> Callable[[], object]:
    thread = store.thread("main")
    before = thread.get(f"@~{size // 2}").id if where == "middle" else None

    def page() -> None:
        assert len(thread.history(PAGE, before=before)) == PAGE

    return page
