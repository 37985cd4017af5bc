"""A store that is shared by forks, threads and tasks that are cancelled."""

from __future__ import annotations

import asyncio
import random
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import holdfast
from holdfast import Store
from holdfast.selftest._children import Child, Tell
from holdfast.selftest._row import Task, Trials
from holdfast.selftest._scenario import goes_on, problems_of

FORKS = 8
THREADS = 4


def sharing(task: Task) -> Trials:
    """A third of the trials each for forks, threads and cancelled tasks."""
    share = -(-task.count // 3)
    with task.target.open("forked", busy_timeout=60) as store:
        wrong = _fork(store, -(-share // FORKS)) + _interleave(store)
    task.progress(1 / 3)
    with task.target.open("threads", busy_timeout=60) as store:
        wrong += _thread(store, -(-share // THREADS))
    task.progress(2 / 3)
    seed = task.chance.randrange(1 << 30)
    wrong += asyncio.run(_cancel(task, share, random.Random(seed)))  # noqa: S311 - repeatable trials
    return Trials(3 * share, wrong)


def _saves(store: Store, name: str, count: int, tell: Tell) -> None:
    """In a child: save with the store that was open before the fork."""
    for n in range(count):
        store.thread("shared").append(log=[f"{name}.{n}"])
        tell(f"{name}.{n}")


def _fork(store: Store, count: int) -> list[str]:
    store.thread("shared").append(log=["first"])
    children = [Child(partial(_saves, store, str(n), count)) for n in range(FORKS)]
    store.thread("shared").append(log=["parent"])
    told = [item for child in children for item in child.wait()]
    wrong = [f"a fork ended with {c.status}" for c in children if c.status]
    return wrong + _missing(store, [*told, "first", "parent"])


def _thread(store: Store, count: int) -> list[str]:
    def work(name: int) -> list[str]:
        told: list[str] = []
        _saves(store, str(name), count, lambda item: told.append(str(item)))
        return told

    with ThreadPoolExecutor(THREADS) as pool:
        told = [item for items in pool.map(work, range(THREADS)) for item in items]
    return _missing(store, told)


def _interleave(store: Store) -> list[str]:
    """Save while the history is being read, which must not wait for itself."""
    thread = store.thread("read and written")
    for n in range(3):
        thread.save({"n": n})
    for checkpoint in thread.history(None):
        thread.save({"n": checkpoint.step})
    return [] if thread.step == 6 else ["a save within a loop over history is lost"]  # noqa: PLR2004


def _missing(store: Store, told: list[str]) -> list[str]:
    found = store.thread("shared").load()["log"]
    wrong = [f"{item} is lost" for item in {*told} - {*found}]
    wrong += ["something is there twice"] if len({*found}) != len(found) else []
    return wrong + problems_of(store)


async def _cancel(task: Task, count: int, chance: random.Random) -> list[str]:
    """Cancel saves at random moments; those that ended are there, once."""
    told: list[str] = []

    async def save(thread: holdfast.AsyncThread, item: str) -> None:
        await thread.append(log=[item])
        told.append(item)

    async with task.target.open_async("cancelled") as store:
        for first in range(0, count, 10):
            items = [f"{n}" for n in range(first, min(first + 10, count))]
            shared = store.thread("shared")
            saves = [asyncio.create_task(save(shared, item)) for item in items]
            for one in saves:
                await asyncio.sleep(chance.choice((0, 0, 0.0005, 0.002)))
                one.cancel()
            await asyncio.gather(*saves, return_exceptions=True)
        await store.thread("shared").append(log=["last"])
    with task.target.open("cancelled") as again:
        wrong = goes_on(again)
        return _missing(again, [*told, "last"]) + ([wrong] if wrong else [])
