"""How large a conversation becomes on disk, and what a turn costs as it grows."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from statistics import median
from typing import NamedTuple

from benchmarks.contest.chart import Bar, chart
from benchmarks.contest.stores.chat import Chat
from benchmarks.contest.stores.threads import (
    AppendingThread,
    CompactedThread,
    SavingThread,
)
from benchmarks.contest.units import volume
from benchmarks.contest.workload import Message, Turn, growing, json_size
from benchmarks.measure import Bench, disk_size, percentile, timed
from benchmarks.peers import PEERS
from benchmarks.report import Row, Series, failed
from benchmarks.workloads import changing_prompt, edited, sliding_window

TURNS = 500
EDGE = 20
MOST_SECONDS = 60
SLOW_SECONDS = 10
VARIANT_LIMIT = 3.0

Make = Callable[[str], Chat]
OURS: dict[str, tuple[float, Make]] = {
    "Holdfast save": (1.5, SavingThread),
    "Holdfast append": (1.5, AppendingThread),
    "Holdfast save, compressed": (0.75, partial(SavingThread, compress=True)),
    "Holdfast append, compressed": (0.75, partial(AppendingThread, compress=True)),
    "Holdfast append, compressed and compacted": (0.55, CompactedThread),
}
VARIANTS: dict[str, Callable[[int], Iterator[Turn]]] = {
    "a changing system prompt": changing_prompt,
    "a 100-message window": sliding_window,
    "an edit every tenth turn": edited,
}


class Run(NamedTuple):
    """One store after one conversation."""

    raw: int
    disk: int
    samples: list[float]


def disk(bench: Bench) -> None:
    """The rows about disk, and every store through the same conversation."""
    for store, runs in _all_stores(bench).items():
        series = _series(store, runs)
        limit = OURS[store][0] if store in OURS else None
        bench.series.append(series)
        bench.rows.append(
            _row(f"disk, {series.turns}-turn chat, {store}", series, limit)
        )
    for variant, turns in VARIANTS.items():
        for packed, limit in ((False, VARIANT_LIMIT), (True, None)):
            make = partial(SavingThread, compress=packed)
            series = _series(variant, [_through(bench, make, turns(TURNS))])
            work = f"disk, {TURNS}-turn chat with {variant}"
            work += ", compressed" if packed else ""
            bench.rows.append(_row(work, series, limit))


def _all_stores(bench: Bench) -> dict[str, list[Run]]:
    """Every store through the conversation, in turns; slow ones only once."""
    stores = {store: make for store, (_, make) in OURS.items()} | PEERS
    runs: dict[str, list[Run]] = {store: [] for store in stores}
    for _ in range(bench.amount(3, 1)):
        for store, done in list(runs.items()):
            if done and sum(done[0].samples) > SLOW_SECONDS:
                continue
            turns = TURNS if store in OURS else bench.amount(TURNS, TURNS // 5)
            try:
                done.append(_through(bench, stores[store], growing(turns)))
            except ImportError as error:
                bench.rows.append(failed(f"disk, {store}", str(error)))
                del runs[store]
    return runs


def _row(work: str, series: Series, limit: float | None) -> Row:
    measured = f"{volume(series.disk)}; raw {volume(series.raw)}"
    return Row(work, measured, series.ratio, limit)


def _series(store: str, runs: list[Run]) -> Series:
    """What several runs of the same conversation have in common."""
    turns = [
        median(samples) for samples in zip(*(r.samples for r in runs), strict=True)
    ]
    every = [sample for run in runs for sample in run.samples]
    return Series(
        store=store,
        turns=len(turns),
        raw=runs[0].raw,
        disk=runs[0].disk,
        first=median(turns[:EDGE]),
        last=median(turns[-EDGE:]),
        p50=median(every),
        p99=percentile(every, 99),
    )


def _through(bench: Bench, make: Make, turns: Iterable[Turn]) -> Run:
    """Save a conversation turn by turn, up to a minute long."""
    with bench.place() as folder:
        path = os.path.join(folder, "chat.db")
        chat = make(path)
        raw, samples = _record(chat, turns)
        chat.close()
        return Run(raw, disk_size(path), samples)


def _record(chat: Chat, turns: Iterable[Turn]) -> tuple[int, list[float]]:
    samples: list[float] = []
    dropped: list[Message] = []
    before: list[Message] = []
    deadline = time.monotonic() + MOST_SECONDS
    for turn in turns:
        samples.append(timed(partial(chat.save, turn)))
        gone = len(before) + len(turn.added) - len(turn.messages)
        dropped += before[: max(0, gone)]
        before = turn.messages
        if time.monotonic() > deadline:
            break
    # Raw is the last state; where a window slides, every message there ever was.
    return json_size(dropped + before), samples


def drawn(series: Sequence[Series]) -> str:
    """The sizes of all stores as a chart."""
    whole = max(s.turns for s in series)
    raw = next(s.raw for s in series if s.turns == whole)
    # Saving whole states and appending make the same file: one bar for both.
    shown = [s for s in series if "append" not in s.store]
    bars = [
        Bar(
            s.store.replace(" save", "")
            + ("" if s.turns == whole else f", {s.turns} turns"),
            s.disk,
            s.ratio,
            is_ours=s.store.startswith("Holdfast"),
        )
        for s in shown
    ]
    return chart(bars, turns=whole, raw=raw)
