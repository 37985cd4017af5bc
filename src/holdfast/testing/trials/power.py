"""The power of a simulated disk is cut: acknowledged saves are there afterwards."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import shutil
from collections.abc import Callable, Iterator
from typing import TypeAlias

import holdfast
from holdfast import Agent, Conflict, HoldfastError, Message, NotFound, Retention, Store
from holdfast.backends.directory._file_changes import INTENT
from holdfast.backends.directory._folder import WORK
from holdfast.testing.faults import Call, Fault, FaultyDisk, Platter
from holdfast.testing.trials.file_systems import cut_file_systems
from holdfast.testing.trials.kills import ignore_repairs
from holdfast.testing.trials.scenario import (
    Durability,
    Source,
    address,
    copy_folder,
    dump,
    goes_on,
    messages,
    problems_of,
)
from holdfast.testing.trials.task import Target, Task, Trials

# The probability of a cut at a call of the disk, and at a call between the changes of
# two files of a folder that belong together: these are few, and the most dangerous.
CUT, CUT_BETWEEN = 0.03, 0.3
REOPENED = 0.15
STEPS = 10
# From MANY cuts of the simulated disk on, real file systems are cut too, a tenth as
# often.
MANY, REAL = 200, 10
# Of so many machines one begins with an empty disk.
FRESH = 5


class Machine:
    """A store in use on a disk that can lose its power at any call.

    ``settle`` is called with each store that is opened, to prepare it further.
    """

    settle: Callable[[Store], None] | None = None

    def __init__(
        self,
        target: Target,
        folder: str,
        chance: random.Random,
        durability: Durability = "full",
    ) -> None:
        self.target, self.folder = target, folder
        self.chance = chance
        self.durability: Durability = durability
        self.platter = Platter(folder, sector=chance.choice((512, 4096)))
        self.disk = FaultyDisk(f"disk {folder}", syncing=False, platter=self.platter)
        self.source = Source(os.path.basename(folder), chance.randrange(10**9))
        self.states: list[object] = []
        self.cuts: dict[str, int] = {}
        self._intent = os.path.join(folder, "store", WORK, INTENT)

    def run(self, steps: int) -> None:
        """Do things; cut the power now and then, in copies."""
        self.disk.arm(Fault(at=1, lasting=True, effect=self._maybe_cut))
        store = self._open()
        self.states.append(dump(store))
        for step in self.chance.choices(STEPS_IN_USE, k=steps):
            with contextlib.suppress(NotFound, Conflict):
                step(store, f"{len(self.states)}-{self.source.ids.id()}")
            if self.chance.random() < REOPENED:
                store.close()
                store = self._open()
            self.states.append(dump(store))
        store.close()
        self.disk.heal()
        self.disk.remove()

    def _open(self) -> Store:
        path = address(self.folder, self.target.place)
        options = self.source.options(self.durability)
        store = self.target.open_on(self.disk, path, **options)
        if self.settle is not None:
            self.settle(store)
        return store

    def _maybe_cut(self, _: Call) -> None:
        is_between = os.path.exists(self._intent)
        if self.chance.random() < (CUT_BETWEEN if is_between else CUT):
            name = f"{self.folder}-cut-{len(self.cuts)}"
            self.platter.cut(name, self.chance)
            self.cuts[name] = len(self.states)

    def allowed(self, seen: int) -> list[object]:
        """The states that a cut may leave after ``seen`` states of the store."""
        first = max(0, seen - 1) if self.durability == "full" else 0
        return self.states[first : seen + 1]


# --- what is done ---------------------------------------------------------------------


def _append(store: Store, _: str) -> None:
    store.thread("chat").append(messages=messages(0, 3, 400))


def _save(store: Store, name: str) -> None:
    store.thread("plan").save({"steps": messages(0, 9), "name": name}, label=name)


def _fork(store: Store, name: str) -> None:
    store.thread("chat").fork(name)


def _rewind(store: Store, _: str) -> None:
    store.thread("chat").rewind("@~1")


def _record(store: Store, name: str) -> None:
    store.thread("chat").record(name, {"paid": name})


def _prune(store: Store, _: str) -> None:
    store.prune(Retention(last=3))


def _compact(store: Store, _: str) -> None:
    store.compact()


def _delete(store: Store, _: str) -> None:
    store.thread("plan").delete()


def _start_anew(store: Store, _: str) -> None:
    store.thread("plan").save({"steps": []}, expect=None)


def _save_agent(store: Store, name: str) -> None:
    store.agents.save(Agent(id="scout", state={"name": name}))


def _converse(store: Store, name: str) -> None:
    talk = [Message.user(f"{name} " * 300, id=name, at=0)]
    store.conversations.create(name, agent="scout", messages=talk)


def _checkpoint_agent(store: Store, name: str) -> None:
    store.agents.checkpoint("scout", id=name)


_Use: TypeAlias = Callable[[Store, str], None]
STEPS_IN_USE: list[_Use] = [
    *[_append] * 8,
    *[_save] * 4,
    *(_save_agent, _converse, _checkpoint_agent, _checkpoint_agent),
    *(_fork, _rewind, _record, _prune, _compact, _delete, _start_anew),
]


# --- the cuts -------------------------------------------------------------------------


def cuts(
    target: Target,
    count: int,
    chance: random.Random,
    machine: Callable[..., Machine] = Machine,
) -> Iterator[tuple[Machine, str, int]]:
    """Cut the power of many machines; most begin with the disk of the one before.

    Gives each machine with the folder that a cut left, and how many states had been
    seen by then.
    """
    done, survivor = 0, ""
    for number in itertools.count():
        start = target.path(f"machine-{number}")
        if number % FRESH == 0:
            os.mkdir(start)
        else:
            shutil.copytree(survivor, start)
        made = machine(target, start, chance)
        made.run(steps=STEPS)
        for folder, seen in made.cuts.items():
            yield made, folder, seen
        done += len(made.cuts)
        if done >= count:
            return
        survivor = chance.choice([start, *made.cuts])


def found_after(folder: str, place: str) -> tuple[object, list[str]]:
    """The dump of the store that a cut left, and its problems."""
    path = copy_folder(folder, f"{folder}-reopened", place)
    with holdfast.open(path, durability="normal", cache_size=0) as store:
        found = dump(store)
        wrong = problems_of(store)
        if stuck := goes_on(store):
            wrong.append(stuck)
    shutil.rmtree(f"{folder}-reopened")
    return found, wrong


def power_cuts(task: Task) -> Trials:
    """Cut the power, and compare the store that is left with the acknowledged saves."""
    ignore_repairs()
    wrong: list[str] = []
    done = 0
    for machine, folder, seen in cuts(task.target, task.count, task.chance):
        wrong += [f"cut {done}: {what}" for what in _wrong(machine, folder, seen)]
        done += 1
        task.done(done)
    if done < MANY:
        return Trials(done, wrong)
    lost, note = cut_file_systems(task, done // REAL)
    return Trials(done, wrong + lost, note)


def _wrong(machine: Machine, folder: str, seen: int) -> list[str]:
    try:
        found, wrong = found_after(folder, machine.target.place)
    except HoldfastError as error:
        return [f"reopening gave {error!r}"]
    if found not in machine.allowed(seen):
        wrong.append("an acknowledged save is lost, or something is in between")
    return wrong
