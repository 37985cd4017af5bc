"""The clock goes back, jumps or stands still: the newest is what was saved last."""

from __future__ import annotations

import random

from holdfast import Store
from holdfast.testing.trials.row import Task, Trials

HOUR = 3_600_000_000
THREADS = 5


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
    """Save after save, each must be the newest."""
    wrong: list[str] = []
    clock = BadClock(task.chance)
    with task.target.open("clock", clock=clock.time, durability="normal") as store:
        for n in range(task.count):
            name = f"t{task.chance.randrange(THREADS)}"
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
