"""Kills a process at every write, sync, truncate and delete of a call.

usage: kill_at_each_write.py FOLDER PLACE CALL...

PLACE is where in the folder the store is: a file, or with ``dir:`` in front a folder.

For each call one line of JSON: how many points there were and what went wrong at them.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import holdfast
from holdfast import HoldfastError, Store
from holdfast.faults import Call, Fault, FaultyDisk, kill
from support.children import Child, report
from support.effort import THOROUGH
from support.scenario import (
    OPERATIONS,
    STEPS,
    Source,
    address,
    build_for,
    copy_folder,
    dump,
    goes_on,
    lazy_disk,
    problems_of,
    unpack_format_1,
)
from support.stores import backend_of

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
    place: str
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
        for count in range(len(self.steps) + 1):
            steps = self.steps[:count]
            done = Trial(self.name, self.folder, self.place, steps, self.opening)
            path = self._copy("whole")
            child = Child(partial(done.attempt, path, None))
            *_, self.calls = child.wait()
            with holdfast.open(path, cache_size=0) as store:
                self.states.append(dump(store))

    def _copy(self, name: str) -> str:
        return copy_folder(self.start, os.path.join(self.folder, name), self.place)

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
        """Every boundary; every other write of a page is torn, or each as well."""
        for at, (call, size) in enumerate(self.calls, 1):
            is_torn = size >= SMALLEST_PAGE and (THOROUGH or at % 2)
            if THOROUGH or not is_torn:
                yield f"{self.name}: killed at {at}, {call}", Fault(at=at, effect=kill)
            if is_torn:
                torn = Fault(at=at, effect=kill, torn=True)
                yield f"{self.name}: torn at {at}, {call}", torn

    def check(self, fault: Fault) -> str | None:
        """What is wrong after a kill, if anything is."""
        path = self._copy("killed")
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
        if any(os.stat(file).st_mode & 0o077 for file in _files(path)):
            return "others may read the store"
        return self._check_header(path) or self._check_backup(path, done, found)

    def _check_header(self, path: str) -> str | None:
        if self.place.startswith("dir:"):
            return None
        with open(path, "rb") as file:
            reserved = file.read(100)[20]
        return None if reserved == 8 else f"pages have {reserved} bytes for a checksum"

    def _check_backup(self, path: str, done: int, found: object) -> str | None:
        if self.name != "backup":
            return None
        copy = _backup_of(path)
        if not os.path.exists(copy.rpartition(":")[2]):
            return "the acknowledged backup is not there" if done else None
        with holdfast.open(copy, durability="normal", cache_size=0) as store:
            if dump(store) != found:
                return "the backup is not the store"
            return ", ".join(problems_of(store)) or None


def _files(path: str) -> list[str]:
    """Every file of a store."""
    whole = path.rpartition(":")[2]
    if os.path.isfile(whole):
        return [whole]
    return [
        os.path.join(folder, name)
        for folder, _, names in os.walk(whole)
        for name in names
    ]


def _backup_of(path: str) -> str:
    kind, colon, whole = path.rpartition(":")
    return f"{kind}{colon}{os.path.join(os.path.dirname(whole), BACKUP)}"


def _name(call: Call) -> str:
    return f"{call.kind} {os.path.basename(call.path)}+{call.offset}"


# --- the calls ------------------------------------------------------------------------


def _backup(store: Store) -> None:
    backend = backend_of(store)
    place = getattr(backend, "folder", backend).path
    store.backup(os.path.join(os.path.dirname(place), BACKUP))


def _crashed(tell: Tell, path: str, disk: FaultyDisk) -> None:
    """In a child: leave a log behind that was never brought into the database."""
    store = disk.open(path, **Source("crashed", 1_500_000).options())
    for operation in ("save", "append", "record"):
        OPERATIONS[operation](store)
    kill(Call("write", path))


def make_trial(name: str, folder: str, place: str) -> Trial:
    """A call with its start."""
    if name == "set-up":
        trial = Trial(name, folder, place, [OPERATIONS["first-save"]], opening=True)
    elif name == "recover":
        trial = Trial(name, folder, place, [OPERATIONS["fork"]], opening=True)
    elif name == "migrate":
        trial = Trial(name, folder, place, [lambda _: None], opening=True)
    elif name == "backup":
        trial = Trial(name, folder, place, [_backup])
    else:
        trial = Trial(name, folder, place, STEPS[name])
    os.makedirs(trial.start)
    path = address(trial.start, place)
    if name == "migrate":
        unpack_format_1(path)
    elif name != "set-up":
        build_for(name, path)
    if name == "recover":
        Child(partial(_crashed, path=path, disk=lazy_disk("lazy"))).wait()
    trial.prepare()
    return trial


def main(folder: str, place: str, names: list[str]) -> None:
    # An end that was torn by a kill is reported, as it should be.
    warnings.filterwarnings("ignore", ".*was never finished", RuntimeWarning)
    for name in names:
        trial = make_trial(name, os.path.join(folder, name), place)
        points = list(trial.points())
        wrong = [f"{what}: {w}" for what, fault in points if (w := trial.check(fault))]
        report({"call": name, "points": len(points), "wrong": wrong})


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
