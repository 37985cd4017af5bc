"""What encryption adds to an append, a load and a record."""

from __future__ import annotations

import os
from itertools import count, cycle
from typing import Literal, Unpack

import holdfast
from benchmarks.contest.workload import Writer
from benchmarks.measure import Bench, Pair, Work, alternate
from benchmarks.report import Row
from holdfast.operations import OpenOptions

KEY = bytes(range(32))
STATE = 1000
LIMIT = 1.3


def keys(bench: Bench) -> None:
    """Calls on an encrypted file against the same calls on a plain one."""
    _appends(bench, "full")
    _appends(bench, "normal")
    _loads(bench, cache_size=64 << 20, work="on an open store", limit=LIMIT)
    _loads(bench, cache_size=0, work="not in the cache", limit=LIMIT)


def _appends(bench: Bench, durability: Literal["full", "normal"]) -> None:
    with bench.place() as folder:
        ours, plain = _stores(folder, durability=durability)
        rounds = bench.amount(200, 40)
        pair = alternate(_appending(ours), _appending(plain), rounds=rounds, block=10)
        work = f"append, {durability}, encrypted against plain"
        _row(bench, work, pair, LIMIT)
        numbers = count()
        pair = alternate(
            lambda: ours.thread("chat").record(f"key {next(numbers)}", {"n": 1}),
            lambda: plain.thread("chat").record(f"key {next(numbers)}", {"n": 1}),
            rounds=rounds,
        )
        work = f"record, {durability}, encrypted against plain"
        _row(bench, work, pair)
        ours.close()
        plain.close()


def _loads(bench: Bench, *, cache_size: int, work: str, limit: float | None) -> None:
    writer = Writer()
    turns = [writer.turn() for _ in range(STATE // 2)]
    with bench.place() as folder:
        ours, plain = _stores(folder, durability="normal", cache_size=cache_size)
        for store in (ours, plain):
            for turn in turns:
                store.thread("chat").append(messages=turn)
        rounds = bench.amount(100, 30)
        chat = ours.thread("chat").load, plain.thread("chat").load
        pair = alternate(*chat, rounds=rounds, block=5)
        text = f"load of {STATE:,} messages, {work}, encrypted against plain"
        _row(bench, text, pair, limit)
        ours.close()
        plain.close()


def _row(bench: Bench, work: str, pair: Pair, limit: float | None = None) -> None:
    a, b = pair.medians
    bench.rows.append(Row(work, pair.text("plain"), a / b, limit))


def _stores(
    folder: str, **options: Unpack[OpenOptions]
) -> tuple[holdfast.Store, holdfast.Store]:
    plain = holdfast.open(os.path.join(folder, "plain.db"), **options)
    options["key"] = KEY
    return holdfast.open(os.path.join(folder, "ours.db"), **options), plain


def _appending(store: holdfast.Store) -> Work:
    thread, writer = store.thread("chat"), Writer()
    turns = cycle([writer.turn() for _ in range(100)])
    return lambda: thread.append(messages=next(turns))
