"""Kills a process at every write, sync, truncate and delete of a call.

usage: boundaries.py FOLDER CALL...

For each call one line of JSON: how many points there were and what went wrong at them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from forking import Child, report
from scenario import (
    FILE,
    OPERATIONS,
    STEPS,
    Source,
    build,
    copy_folder,
    dump,
    goes_on,
    lazy_disk,
    problems_of,
)

import holdfast
from holdfast import HoldfastError, Store
from holdfast.faults import Call, Fault, FaultyDisk, kill

Tell = Callable[[object], None]
Steps = list[Callable[[Store], None]]

BACKUP = "copy.db"
SMALLEST_PAGE = 512


@dataclass
class Trial:
    """A call, the folder it starts from and the states it may leave behind.

    ``states[n]`` is what the store holds when n of the steps are done. With ``opening``
    the calls of opening the store are among the points.
    """

    name: str
    folder: str
    steps: Steps
    opening: bool = False
    states: list[object] = field(default_factory=list)
    calls: list[tuple[str, int]] = field(default_factory=list)

    @property
    def start(self) -> str:
        return os.path.join(self.folder, "start")

    def prepare(self) -> None:
        """Build the start, and do the call once without a fault, step by step."""
        os.makedirs(self.start, exist_ok=True)
        path = copy_folder(self.start, os.path.join(self.folder, "whole"))
        for count in range(len(self.steps) + 1):
            done = Trial(self.name, self.folder, self.steps[:count], self.opening)
            path = copy_folder(self.start, os.path.join(self.folder, "whole"))
            child = Child(partial(done.attempt, path, None))
            *_, self.calls = child.wait()
            with holdfast.open(path, cache_size=0) as store:
                self.states.append(dump(store))

    def attempt(self, path: str, fault: Fault | None, tell: Tell) -> None:
        """In a child: the call, acknowledged step by step, on a faulty disk."""
        disk = lazy_disk("faulty")
        seen: list[tuple[str, int]] = []
        watch = Fault(
            at=1,
            lasting=True,
            effect=lambda call: seen.append((_name(call), len(call.data))),
        )
        if self.opening:
            disk.arm(fault or watch)
        store = disk.open(path, **Source("call", 2_000_000).options())
        if not self.opening:
            disk.arm(fault or watch)
        for step in self.steps:
            step(store)
            tell("done")
        store.close()
        tell(seen)

    def points(self) -> Iterator[tuple[str, Fault]]:
        """Every boundary, and every write of a page torn as well."""
        for at, (call, size) in enumerate(self.calls, 1):
            yield f"{self.name}: killed at {at}, {call}", Fault(at=at, effect=kill)
            if size >= SMALLEST_PAGE:
                torn = Fault(at=at, effect=kill, torn=True)
                yield f"{self.name}: torn at {at}, {call}", torn

    def check(self, fault: Fault) -> str | None:
        """What is wrong after a kill, if anything is."""
        path = copy_folder(self.start, os.path.join(self.folder, "killed"))
        child = Child(partial(self.attempt, path, fault))
        done = len(child.wait())
        if not child.was_killed:
            return f"ended with status {child.status} instead of being killed"
        try:
            return self._check_store(path, done)
        except HoldfastError as error:
            return f"reopening gave {error!r}"

    def _check_store(self, path: str, done: int) -> str | None:
        with holdfast.open(path, durability="normal", cache_size=0) as store:
            found = dump(store)
            if found not in self.states[done : done + 2]:
                return f"after {done} steps the store is in between"
            problems = problems_of(store)
            if problems:
                return f"verify found {problems}"
            if wrong := goes_on(store):
                return wrong
            if os.stat(path).st_mode & 0o077:
                return "others may read the file"
        return self._check_header(path) or self._check_backup(path, done, found)

    def _check_header(self, path: str) -> str | None:
        with open(path, "rb") as file:
            reserved = file.read(100)[20]
        return None if reserved == 8 else f"pages have {reserved} bytes for a checksum"

    def _check_backup(self, path: str, done: int, found: object) -> str | None:
        if self.name != "backup":
            return None
        copy = os.path.join(os.path.dirname(path), BACKUP)
        if not os.path.exists(copy):
            return "the acknowledged backup is not there" if done else None
        with holdfast.open(copy, durability="normal", cache_size=0) as store:
            if dump(store) != found:
                return "the backup is not the store"
            return ", ".join(problems_of(store)) or None


def _name(call: Call) -> str:
    return f"{call.kind} {os.path.basename(call.path)}+{call.offset}"


# --- the calls ------------------------------------------------------------------------


def _backup(store: Store) -> None:
    folder = os.path.dirname(store._context.backend.path)
    store.backup(os.path.join(folder, BACKUP))


def _crashed(tell: Tell, path: str, disk: FaultyDisk) -> None:
    """In a child: leave a log behind that was never brought into the database."""
    store = disk.open(path, **Source("crashed", 1_500_000).options())
    for operation in ("save", "append", "record"):
        OPERATIONS[operation](store)
    kill(Call("write", path))


def make_trial(name: str, folder: str) -> Trial:
    """A call with its start."""
    if name == "set-up":
        trial = Trial(name, folder, [OPERATIONS["first-save"]], opening=True)
    elif name == "recover":
        trial = Trial(name, folder, [OPERATIONS["fork"]], opening=True)
    elif name == "backup":
        trial = Trial(name, folder, [_backup])
    else:
        trial = Trial(name, folder, STEPS[name])
    os.makedirs(trial.start)
    if name != "set-up":
        build(os.path.join(trial.start, FILE))
    if name == "recover":
        path = os.path.join(trial.start, FILE)
        Child(partial(_crashed, path=path, disk=lazy_disk("lazy"))).wait()
    trial.prepare()
    return trial


def main(folder: str, names: list[str]) -> None:
    for name in names:
        trial = make_trial(name, os.path.join(folder, name))
        points = list(trial.points())
        wrong = [f"{what}: {w}" for what, fault in points if (w := trial.check(fault))]
        report({"call": name, "points": len(points), "wrong": wrong})


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
