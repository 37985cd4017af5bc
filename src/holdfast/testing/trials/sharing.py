"""A store that is shared by forks, threads and tasks that are cancelled."""

from __future__ import annotations

import asyncio
import random
import signal
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import holdfast
from holdfast import Closed, Store
from holdfast.testing.faults import Call, Fault
from holdfast.testing.trials.children import Child, Tell
from holdfast.testing.trials.scenario import goes_on, lazy_disk, problems_of
from holdfast.testing.trials.task import FILE, FOLDER, Target, Task, Trials

FORKS = 8
THREADS = 4
# Seconds for which a save is held up, and in which a child has to have saved.
HELD, LIMIT = 0.5, 5
PATIENCE = 60.0
CLOSED = "closed"


def sharing(task: Task) -> Trials:
    """A third of the trials each for forks, threads and cancelled tasks."""
    share = -(-task.count // 3)
    with task.target.open("forked", busy_timeout=PATIENCE) as store:
        wrong = _fork(store, -(-share // FORKS)) + _interleave(store)
    if task.target.kind in {FILE, FOLDER}:
        wrong += _fork_within_a_save(task.target, PATIENCE)
        wrong += _fork_within_a_save(task.target, HELD / 10)
    task.progress(1 / 3)
    with task.target.open("threads", busy_timeout=PATIENCE) as store:
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


def _fork_within_a_save(target: Target, patience: float) -> list[str]:
    """Fork while another thread saves: the child does not inherit half a save.

    The fork waits for the save, or after some time leaves the child a closed store.
    """
    # Newer versions of Python warn about a fork beside other threads.
    warnings.filterwarnings("ignore", ".*multi-threaded", DeprecationWarning)
    name, disk = f"within {patience}", lazy_disk("held")
    is_waiting = patience > HELD
    held = HELD if is_waiting else PATIENCE
    is_saving, is_forked = threading.Event(), threading.Event()

    def hold(_: Call) -> None:
        is_saving.set()
        is_forked.wait(held)

    with target.open_on(disk, target.url(name), busy_timeout=patience) as store:
        store.thread("shared").append(log=["first"])
        disk.arm(Fault(at=1, effect=hold))
        with ThreadPoolExecutor(1) as pool:
            save = pool.submit(store.thread("shared").append, log=["held"])
            is_saving.wait()
            child = Child(partial(_save_in_fork, store))
            is_forked.set()
            save.result()
        told = child.wait()
    wrong = [f"a fork ended with {child.status}"] if child.status else []
    if is_waiting is (told == [CLOSED]):
        wrong.append(f"a fork within a save, after {patience} s, saved {told}")
    told = [item for item in told if item != CLOSED]
    with target.open(name) as again:
        return wrong + _missing(again, [*told, "first", "held"])


def _save_in_fork(store: Store, tell: Tell) -> None:
    """In a child: save with the store of the parent, unless it is closed."""
    # End the child if it waits for a lock that a thread of the parent holds.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(LIMIT)
    try:
        _saves(store, "child", 3, tell)
    except Closed:
        tell(CLOSED)


def _thread(store: Store, count: int) -> list[str]:
    def work(name: int) -> list[str]:
        told: list[str] = []
        _saves(store, str(name), count, lambda item: told.append(str(item)))
        return told

    with ThreadPoolExecutor(THREADS) as pool:
        told = [item for items in pool.map(work, range(THREADS)) for item in items]
    return _missing(store, told)


def _interleave(store: Store) -> list[str]:
    """Save while the history is read in a loop, which must not block itself."""
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
