"""A process is killed at every write, sync, rename and delete of a call."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from holdfast import HoldfastError, Store
from holdfast.testing.faults import Call, Fault, FaultyDisk, kill
from holdfast.testing.trials.children import Child, Tell
from holdfast.testing.trials.kills import ignore_repairs
from holdfast.testing.trials.scenario import (
    OPERATIONS,
    STEPS,
    Source,
    Step,
    address,
    build_for,
    copy_folder,
    dump,
    files_of,
    goes_on,
    lazy_disk,
    problems_of,
)
from holdfast.testing.trials.task import Target, Task, Trials

Steps = list[Step]

BACKUP = "copy.db"
SMALLEST_PAGE = 512
CALLS = ("set-up", "recover", "backup", *STEPS)


@dataclass
class Trial:
    """A call, the folder it starts from and the states it may leave behind.

    ``states[n]`` is the dump of the store when n of the steps are done. The points
    include the calls of opening the store with ``opening``, and a torn write of each
    page with ``thorough``.
    """

    name: str
    target: Target
    steps: Steps
    opening: bool = False
    thorough: bool = False
    states: list[object] = field(default_factory=list[object])
    calls: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])

    @property
    def start(self) -> str:
        return self.target.path("start")

    def prepare(self) -> None:
        """Build the start, and do the call once without a fault, step by step."""
        os.makedirs(self.start, exist_ok=True)
        for count in range(len(self.steps) + 1):
            done = Trial(self.name, self.target, self.steps[:count], self.opening)
            path = self._copy("whole")
            child = Child(partial(done.attempt, path, None))
            *_, self.calls = child.wait()
            with self.target.open_at(path, cache_size=0) as store:
                self.states.append(dump(store))

    def _copy(self, name: str) -> str:
        return copy_folder(self.start, self.target.path(name), self.target.place)

    def attempt(self, path: str, fault: Fault | None, tell: Tell) -> None:
        """In a child: the call, acknowledged step by step, on a faulty disk."""
        os.chdir(os.path.dirname(path.rpartition(":")[2]))
        disk = lazy_disk("faulty")
        seen: list[tuple[str, int]] = []

        def see(call: Call) -> None:
            where = f"{os.path.basename(call.path)}+{call.offset}"
            seen.append((f"{call.kind} {where}", len(call.data)))

        watch = Fault(at=1, lasting=True, effect=see)
        if self.opening:
            disk.arm(fault or watch)
        options = Source("call", 2_000_000).options()
        store = self.target.open_on(disk, path, **options)
        if not self.opening:
            disk.arm(fault or watch)
        for step in self.steps:
            step(store)
            tell("done")
        store.close()
        tell(seen)

    def points(self) -> Iterator[tuple[str, Fault]]:
        """Kills at boundaries; every other write of a page is torn, or all as well."""
        for at, (call, size) in enumerate(self.calls, 1):
            is_torn = size >= SMALLEST_PAGE and (self.thorough or at % 2)
            if self.thorough or not is_torn:
                yield f"{self.name}: killed at {at}, {call}", Fault(at=at, effect=kill)
            if is_torn:
                torn = Fault(at=at, effect=kill, torn=True)
                yield f"{self.name}: torn at {at}, {call}", torn

    def check(self, fault: Fault) -> str | None:
        """Kill the call at a fault and reopen the store; what is wrong, or ``None``."""
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
        with self.target.open_at(path, durability="normal", cache_size=0) as store:
            found = dump(store)
            if found not in self.states[done : done + 2]:
                return f"after {done} steps the store is in between"
            problems = problems_of(store)
            if problems:
                return f"verify found {problems}"
            if wrong := goes_on(store):
                return wrong
        if any(os.stat(file).st_mode & 0o077 for file in files_of(path)):
            return "others may read the store"
        return self._check_header(path) or self._check_backup(path, done, found)

    def _check_header(self, path: str) -> str | None:
        if self.target.kind != "file":
            return None
        with open(path, "rb") as file:
            reserved = file.read(100)[20]
        return None if reserved == 8 else f"pages have {reserved} bytes for a checksum"  # noqa: PLR2004

    def _check_backup(self, path: str, done: int, found: object) -> str | None:
        if self.name != "backup":
            return None
        copy = _backup_of(path)
        if not os.path.exists(copy.rpartition(":")[2]):
            return "the acknowledged backup is not there" if done else None
        with self.target.open_at(copy, durability="normal", cache_size=0) as store:
            if dump(store) != found:
                return "the backup is not the store"
            return ", ".join(problems_of(store)) or None


def _backup_of(path: str) -> str:
    kind, colon, whole = path.rpartition(":")
    return f"{kind}{colon}{os.path.join(os.path.dirname(whole), BACKUP)}"


# --- the calls ------------------------------------------------------------------------


def _back_up(store: Store) -> None:
    # Beside the store: the process has changed to its folder.
    store.backup(os.path.abspath(BACKUP))


def _crashed(path: str, disk: FaultyDisk, _: Tell) -> None:
    """In a child: leave a log that was never checkpointed into the database."""
    store = disk.open(path, **Source("crashed", 1_500_000).options())
    for operation in ("save", "append", "record"):
        OPERATIONS[operation](store)
    kill(Call("write", path))


def make_trial(name: str, target: Target, *, thorough: bool = False) -> Trial:
    """A call with its start, ready to be killed."""
    trial = Trial(name, target, _steps(name), name in {"set-up", "recover"}, thorough)
    os.makedirs(trial.start)
    path = address(trial.start, target.place)
    if name != "set-up":
        build_for(name, path)
    if name == "recover":
        Child(partial(_crashed, path, lazy_disk("lazy"))).wait()
    trial.prepare()
    return trial


def _steps(name: str) -> Steps:
    if name == "backup":
        return [_back_up]
    return STEPS[{"set-up": "first-save", "recover": "fork"}.get(name, name)]


def boundaries(task: Task) -> Trials:
    """Kill call after call at boundaries of each, up to the wanted number."""
    ignore_repairs()
    points = 0
    # Take a share of each call's points, so that few trials still cover many calls.
    most = 2 * -(-task.count // len(CALLS))
    wrong: list[str] = []
    for name in task.chance.sample(CALLS, len(CALLS)):
        trial = make_trial(name, task.target.at(name), thorough=True)
        found = list(trial.points())
        chosen = task.chance.sample(found, min(most, task.count - points, len(found)))
        for what, fault in chosen:
            if in_between := trial.check(fault):
                wrong.append(f"{what}: {in_between}")
            points += 1
            task.done(points)
        shutil.rmtree(trial.target.folder)
        if points >= task.count:
            break
    return Trials(points, wrong)
