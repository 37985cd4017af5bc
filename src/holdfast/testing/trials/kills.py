"""Writers are killed at random moments: nothing acknowledged is lost."""

from __future__ import annotations

import random
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from holdfast import HoldfastError, Store
from holdfast.testing.trials.children import Child, Tell
from holdfast.testing.trials.scenario import messages, problems_of
from holdfast.testing.trials.task import Task, Trials

ROUNDS_PER_STORE = 15
MOST_WRITERS = 3
LONGEST_LIFE = 0.020
READY = "ready"
# How many reports the first writers of a store make before they are killed.
FIRST = 9

Open = Callable[[], Store]


def write(open_store: Open, name: str, tell: Tell) -> None:
    """In a child: save for as long as it lives, and tell of every save made."""
    with open_store() as store:
        shared, own = store.thread("shared"), store.thread(name)
        tell(READY)
        for n in range(10_000):
            shared.append(log=[{"writer": name, "n": n, "text": "x" * (n % 7) * 60}])
            tell("appended")
            items = messages(0, n % 40)
            own.save({"items": items, "count": len(items), "n": n})
            tell("saved")


@dataclass
class Rounds:
    """A store whose writers are killed in rounds, and the saves it acknowledged."""

    open_to_write: Open
    open_to_check: Open
    chance: random.Random
    acknowledged: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    wrong: list[str] = field(default_factory=list[str])

    def run(self, number: int) -> None:
        """Start writers, kill them all, and check."""
        names = [f"w{number}.{n}" for n in range(self.chance.randint(1, MOST_WRITERS))]
        work = partial(write, self.open_to_write)
        writers = {name: Child(partial(work, name)) for name in names}
        awaited = self._awaited()
        told = {
            name: [writer.report() for _ in range(awaited)]
            for name, writer in writers.items()
        }
        for writer in self.chance.sample(list(writers.values()), len(writers)):
            time.sleep(self.chance.uniform(0.001, LONGEST_LIFE))
            writer.kill()
        for name, writer in writers.items():
            reports = (*told[name], *writer.wait())
            self.acknowledged[name] = [r for r in reports if r not in (READY, None)]
            if not writer.was_killed:
                self.wrong.append(f"{name} ended by itself: {writer.status}")
        self._check(number)

    def _awaited(self) -> int:
        """The number of reports to wait for; with 0 a writer is killed while it opens.

        On a slow machine a writer might never save in so short a life. The first
        writers of a store are given time for several saves, so that a store that
        breaks its promises only now and then is noticed.
        """
        if not self.acknowledged:
            return FIRST
        return self.chance.choice((0, 1, 1, 1, 2))

    def _check(self, number: int) -> None:
        try:
            with self.open_to_check() as store:
                self.wrong += [f"round {number}: {w}" for w in self._problems(store)]
        except HoldfastError as error:
            self.wrong.append(f"round {number}: {error!r}")

    def _problems(self, store: Store) -> list[str]:
        found = problems_of(store)
        log = self._log(store)
        found += [
            problem
            for name, told in self.acknowledged.items()
            for problem in (
                *_appended(log[name], told.count("appended"), name),
                *_saved(store, told.count("saved"), name),
            )
        ]
        return found

    def _log(self, store: Store) -> dict[str, list[int]]:
        thread = store.thread("shared")
        log: dict[str, list[int]] = defaultdict(list)
        if thread.head is None:
            return log
        history = thread.history(None, order="oldest")
        # Load the state of this listing: a server may still commit a killed writer's
        # save.
        entries = thread.load(history[-1])["log"]
        for entry in entries:
            log[entry["writer"]].append(entry["n"])
        steps = [c.step for c in history]
        if steps != list(range(1, len(entries) + 1)):
            self.wrong.append(f"{len(entries)} entries in steps {steps[:5]}...")
        return log


def _appended(found: list[int], told: int, name: str) -> list[str]:
    if found == list(range(told)) or found == list(range(told + 1)):
        return []
    return [f"{name}: {told} appends acknowledged, found {found}"]


def _saved(store: Store, told: int, name: str) -> list[str]:
    thread = store.thread(name)
    if thread.head is None:
        return [f"{name}: {told} saves are gone"] if told else []
    state = thread.load()
    if state["items"] != messages(0, state["count"]):
        return [f"{name}: half a state"]
    if state["n"] + 1 not in (told, told + 1) or thread.step != state["n"] + 1:
        return [f"{name}: {told} saves acknowledged, the last is {state['n']}"]
    return []


def ignore_repairs() -> None:
    """Ignore the warnings of a store that repairs itself: here they are expected."""
    for told in (".*was never finished", ".*wrong page checksums", ".*not synced"):
        warnings.filterwarnings("ignore", told, RuntimeWarning)


def kills(task: Task) -> Trials:
    """Kill the wanted number of writers, in rounds on several stores."""
    ignore_repairs()
    killed, acknowledged, number = 0, 0, 0
    wrong: list[str] = []
    while killed < task.count:
        name = f"s{number}"
        rounds = Rounds(
            partial(task.target.open, name, busy_timeout=60),
            partial(task.target.open, name, durability="normal", cache_size=0),
            task.chance,
        )
        rounds.open_to_write().close()
        while len(rounds.acknowledged) + killed < task.count:
            rounds.run(number)
            number += 1
            task.done(killed + len(rounds.acknowledged))
            if number % ROUNDS_PER_STORE == 0:
                break
        if not rounds.wrong:
            task.target.discard(name)
        killed += len(rounds.acknowledged)
        acknowledged += sum(map(len, rounds.acknowledged.values()))
        wrong += rounds.wrong
    if not acknowledged:
        wrong.append("no save was acknowledged before its writer was killed")
    return Trials(killed, wrong, f"{acknowledged:,} saves acknowledged")
