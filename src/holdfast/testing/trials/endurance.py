"""Save after save: beside a reader, and while the clock goes back."""

from __future__ import annotations

import glob
import os
import random
import shutil
from functools import partial

import holdfast
from holdfast import Store
from holdfast.testing.trials.children import Child, Tell
from holdfast.testing.trials.scenario import problems_of
from holdfast.testing.trials.task import Target, Task, Trials

LARGEST_LOG = 64 << 20
BACKUPS = 10
# Pieces of this size grow the log by megabytes within a row.
TEXT = "x" * 2000
THREADS, CLOCK_THREADS = 20, 5


def _read(target: Target, tell: Tell) -> None:
    """In a child: verify the whole store, again and again."""
    while True:
        with target.open("store", read_only=True) as store:
            for problem in problems_of(store):
                tell(problem)


def endurance(task: Task) -> Trials:
    """Save on and on while another process verifies; back up ten times meanwhile."""
    wrong: list[str] = []
    largest = 0
    every = max(1, task.count // BACKUPS)
    with task.target.open("store", durability="normal") as store:
        store.thread("t0").save({"n": -1})
        reader = Child(partial(_read, task.target))
        for n in range(task.count):
            store.thread(f"t{n % THREADS}").save({"n": n, "text": TEXT})
            largest = max(largest, _log_size(task.target))
            if n % every == every - 1:
                wrong += _back_up(store, task.target.path(f"backup-{n}"), n)
            task.done(n + 1)
        reader.kill()
        wrong += [f"the reader found {problem}" for problem in reader.wait()]
        wrong += problems_of(store)
        saves = sum(store.thread(f"t{n}").step for n in range(THREADS))
        if saves != task.count + 1:
            wrong.append(f"{task.count + 1} saves acknowledged, {saves} are there")
    if largest > LARGEST_LOG:
        wrong.append(f"the log grew to {largest >> 20} MB")
    return Trials(task.count, wrong, f"log up to {largest / (1 << 20):.1f} MB")


def _log_size(target: Target) -> int:
    """The size of the log of a file, or of the index of a folder."""
    path = target.path("store")
    logs = [f"{path}-wal"]
    if os.path.isdir(path):
        logs = glob.glob(
            f"{glob.escape(path)}/**/*-wal", include_hidden=True, recursive=True
        )
    return sum(os.path.getsize(log) for log in logs if os.path.exists(log))


def _back_up(store: Store, path: str, n: int) -> list[str]:
    store.backup(path)
    url = f"dir:{path}" if os.path.isdir(path) else path
    with holdfast.open(url, cache_size=0) as copy:
        last = copy.thread(f"t{n % THREADS}").load()
        wrong = problems_of(copy)
    if last["n"] != n:
        wrong.append(f"the backup after save {n} ends with {last['n']}")
    shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
    return wrong


HOUR = 3_600_000_000


class BadClock:
    """A clock that goes back two hours, jumps a day ahead, or stands still."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._now = 1_700_000_000_000_000

    def time(self) -> int:
        """Microseconds, in no order."""
        self._now += self._chance.choice((0, 0, 1, HOUR, -2 * HOUR, 24 * HOUR))
        return self._now


def clocks(task: Task) -> Trials:
    """Save many times with a clock in disorder; each save must be the newest."""
    wrong: list[str] = []
    clock = BadClock(task.chance)
    with task.target.open("clock", clock=clock.time, durability="normal") as store:
        for n in range(task.count):
            name = f"t{task.chance.randrange(CLOCK_THREADS)}"
            store.thread(name).save({"n": n})
            wrong += [f"save {n}: {what}" for what in _not_newest(store, name, n)]
            task.done(n + 1)
    return Trials(task.count, wrong)


def _not_newest(store: Store, name: str, n: int) -> list[str]:
    thread = store.thread(name)
    seqs = [checkpoint.seq for checkpoint in thread.history(5)]
    facts = {
        "the state of the thread is older": thread.load() == {"n": n},
        "the history is not in order": seqs == sorted(seqs, reverse=True),
        "another thread counts as newer": store.threads(limit=1)[0].id == name,
    }
    return [what for what, holds in facts.items() if not holds]
