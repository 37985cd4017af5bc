"""Kills writers at random moments and looks at what they left behind.

usage: random_kills.py FOLDER SEED ROUNDS [KIND [DOOR]]

The stores are files, or with "dir:" as their kind folders. The writers use the
sync API ("blocking") or the async API ("awaited").

One line of JSON: how many writers were killed, how many saves had been acknowledged,
and what was wrong.
"""

from __future__ import annotations

import os
import random
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import holdfast
from holdfast import HoldfastError, Store
from support.children import Child, report
from support.scenario import messages, problems_of
from support.stores import opened

ROUNDS_PER_STORE = 15
MOST_WRITERS = 3
LONGEST_LIFE = 0.020

Tell = Callable[[object], None]


def write(door: str, path: str, name: str, tell: Tell) -> None:
    """In a child: save for as long as it lives, and tell of every save made."""
    with opened(door, path) as store:
        shared, own = store.thread("shared"), store.thread(name)
        tell("ready")
        for n in range(10_000):
            shared.append(log=[{"writer": name, "n": n, "text": "x" * (n % 7) * 60}])
            tell("appended")
            items = messages(0, n % 40)
            own.save({"items": items, "count": len(items), "n": n})
            tell("saved")


@dataclass
class Rounds:
    """A store that crash after crash is written to, and what it must hold."""

    path: str
    door: str
    chance: random.Random
    acknowledged: dict[str, list[str]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def run(self, number: int) -> None:
        """Start writers, kill them all, and check."""
        names = [f"w{number}.{n}" for n in range(self.chance.randint(1, MOST_WRITERS))]
        work = partial(write, self.door, self.path)
        writers = {name: Child(partial(work, name)) for name in names}
        if self.chance.random() < 0.8:
            for writer in writers.values():
                writer.report()
        for writer in self.chance.sample(list(writers.values()), len(writers)):
            time.sleep(self.chance.uniform(0.001, LONGEST_LIFE))
            writer.kill()
        for name, writer in writers.items():
            told = [line for line in writer.wait() if line != "ready"]
            self.acknowledged[name] = told
            if not writer.was_killed:
                self.wrong.append(f"{name} ended by itself: {writer.status}")
        self._check(number)

    def _check(self, number: int) -> None:
        try:
            with holdfast.open(self.path, durability="normal", cache_size=0) as store:
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
                *self._appended(log[name], told.count("appended"), name),
                *self._saved(store, told.count("saved"), name),
            )
        ]
        return found

    def _log(self, store: Store) -> dict[str, list[int]]:
        thread = store.thread("shared")
        log: dict[str, list[int]] = defaultdict(list)
        if thread.head is None:
            return log
        entries = thread.load()["log"]
        for entry in entries:
            log[entry["writer"]].append(entry["n"])
        steps = [c.step for c in thread.history(None, order="oldest")]
        if steps != list(range(1, len(entries) + 1)):
            self.wrong.append(f"{len(entries)} entries in steps {steps[:5]}...")
        return log

    def _appended(self, found: list[int], told: int, name: str) -> list[str]:
        if found == list(range(told)) or found == list(range(told + 1)):
            return []
        return [f"{name}: {told} appends acknowledged, found {found}"]

    def _saved(self, store: Store, told: int, name: str) -> list[str]:
        thread = store.thread(name)
        if thread.head is None:
            return [f"{name}: {told} saves are gone"] if told else []
        state = thread.load()
        if state["items"] != messages(0, state["count"]):
            return [f"{name}: half a state"]
        if state["n"] + 1 not in (told, told + 1) or thread.step != state["n"] + 1:
            return [f"{name}: {told} saves acknowledged, the last is {state['n']}"]
        return []


def main(
    folder: str, seed: int, rounds: int, kind: str = "", door: str = "blocking"
) -> None:
    # An end that was torn by a kill is reported, as it should be.
    warnings.filterwarnings("ignore", ".*was never finished", RuntimeWarning)
    chance = random.Random(seed)
    kills = acknowledged = 0
    wrong: list[str] = []
    for first in range(0, rounds, ROUNDS_PER_STORE):
        stores = Rounds(kind + os.path.join(folder, f"{first}.db"), door, chance)
        holdfast.open(stores.path).close()
        for number in range(first, min(rounds, first + ROUNDS_PER_STORE)):
            stores.run(number)
        kills += len(stores.acknowledged)
        acknowledged += sum(map(len, stores.acknowledged.values()))
        wrong += stores.wrong
    report({"kills": kills, "acknowledged": acknowledged, "wrong": wrong})


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
