"""Many savers at once: threads, tasks and processes on one file."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing.synchronize import Barrier
from statistics import mean, median

import holdfast
from benchmarks.contest.disk import sync_time
from benchmarks.contest.units import duration
from benchmarks.contest.workload import Writer
from benchmarks.measure import Bench
from benchmarks.report import Row

SAVERS = 16
NOTES = 64
NOTE_SIZE = 500

State = dict[str, object]


def savers(bench: Bench) -> None:
    """Sixteen savers, each on its own thread of the store, against one."""
    _throughput(bench, "threads", _threads_rate, 2.5)
    _throughput(bench, "tasks", _tasks_rate, 3)


def _throughput(
    bench: Bench, name: str, rate: Callable[[str, int, float], float], goal: float
) -> None:
    many: list[float] = []
    one: list[float] = []
    syncs: list[float] = []
    seconds = 1.0 if not bench.quick else 0.5
    with bench.place() as folder:
        for number in range(bench.amount(5, 3)):
            syncs.append(sync_time(folder))
            for savers, rates in ((SAVERS, many), (1, one)):
                path = os.path.join(folder, f"{savers}-{number}.db")
                rates.append(rate(path, savers, seconds))
    ours, reference = median(many), median(one)
    work = f"{SAVERS} concurrent savers ({name}), full, against one"
    # The slower the disk, the more there is to share: the ratio means little alone.
    measured = (
        f"{ours:,.0f} saves/s; one {reference:,.0f} saves/s"
        f" (fdatasync {duration(median(syncs))})"
    )
    bench.rows.append(Row(work, measured, ours / reference, goal, "at least"))


def _states() -> list[State]:
    writer = Writer()
    return [{"note": writer.text(NOTE_SIZE), "step": n} for n in range(NOTES)]


def _threads_rate(path: str, savers: int, seconds: float) -> float:
    states = _states()
    with (
        holdfast.open(path) as store,
        ThreadPoolExecutor(savers) as pool,
    ):
        together = threading.Barrier(savers)

        def work(number: int) -> int:
            thread = store.thread(f"t{number}")
            thread.save(states[0])
            together.wait()
            return _save_for(thread, states, seconds)

        return sum(pool.map(work, range(savers))) / seconds


def _save_for(thread: holdfast.Thread, states: list[State], seconds: float) -> int:
    saved = 0
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        saved += 1
        thread.save(states[saved % NOTES])
    return saved


def _tasks_rate(path: str, savers: int, seconds: float) -> float:
    return asyncio.run(_tasks(path, savers, seconds)) / seconds


async def _tasks(path: str, savers: int, seconds: float) -> int:
    states = _states()
    async with holdfast.open_async(path) as store:
        threads = [store.thread(f"t{number}") for number in range(savers)]
        await asyncio.gather(*(thread.save(states[0]) for thread in threads))
        deadline = time.perf_counter() + seconds

        async def work(thread: holdfast.AsyncThread) -> int:
            saved = 0
            while time.perf_counter() < deadline:
                saved += 1
                await thread.save(states[saved % NOTES])
            return saved

        return sum(await asyncio.gather(*map(work, threads)))


# --- processes ------------------------------------------------------------------------

_together: Barrier


def processes(bench: Bench) -> None:
    """Sixteen processes on one file: whether one of them starves."""
    seconds = bench.amount(4, 2)
    context = multiprocessing.get_context("spawn")
    with bench.place() as folder:
        path = os.path.join(folder, "p.db")
        holdfast.open(path).close()
        with ProcessPoolExecutor(
            SAVERS, context, _join, (context.Barrier(SAVERS),)
        ) as pool:
            work = [
                pool.submit(_process, path, number, seconds) for number in range(SAVERS)
            ]
            saved = [future.result() for future in work]
    measured = (
        f"slowest {min(saved):,}; mean {mean(saved):,.0f}, fastest {max(saved):,}"
        f" in {seconds} s, {sum(saved) / seconds:,.0f} saves/s"
    )
    bench.rows.append(
        Row(
            f"{SAVERS} processes on one file, full: the slowest against the mean",
            measured,
            min(saved) / mean(saved),
            0.5,
            "at least",
        )
    )


def _join(together: Barrier) -> None:
    global _together  # noqa: PLW0603 - how a pool hands a barrier to its processes
    _together = together


def _process(path: str, number: int, seconds: float) -> int:
    states = _states()
    with holdfast.open(path) as store:
        thread = store.thread(f"p{number}")
        thread.save(states[0])
        # All sixteen wait here, so each of them is a process of its own.
        _together.wait()
        return _save_for(thread, states, seconds)
