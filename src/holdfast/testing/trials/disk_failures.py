"""The disk is full or fails at each call: an error of ours, and nothing half done."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from holdfast import HoldfastError, Store
from holdfast.testing.faults import Fault, FaultyDisk, disk_full, io_error
from holdfast.testing.trials.kills import ignore_repairs
from holdfast.testing.trials.scenario import (
    STEPS,
    Source,
    Step,
    address,
    build_for,
    copy_folder,
    dump,
    goes_on,
    lazy_disk,
    problems_of,
)
from holdfast.testing.trials.task import Target, Task, Trials

# The faults of one call of the disk, and of all calls from that one on.
FAILURES: Mapping[str, Fault] = MappingProxyType(
    {
        "full": Fault(at=1, effect=disk_full),
        "full-torn": Fault(at=1, effect=disk_full, torn=True),
        "full-for-a-while": Fault(at=1, effect=disk_full, lasting=True),
        "broken": Fault(at=1, effect=io_error),
        "broken-for-a-while": Fault(at=1, effect=io_error, lasting=True),
    }
)
CODES = {"disk_full", "io_error"}
# Words in the error of a call that was made, and of one that was not.
DONE = ("was saved, but a power cut", "stays removed")
NOT_DONE = "was not saved"


def failing(step: Step, store: Store) -> HoldfastError | None:
    """Run a step; returns its error, ``None`` if it was made."""
    try:
        step(store)
    except HoldfastError as error:
        return error
    return None


@dataclass
class FailingCall:
    """A call on a disk that fails, and the states that it may leave."""

    name: str
    target: Target
    disk: FaultyDisk

    def __post_init__(self) -> None:
        self.source = Source("call", 2_000_000)
        *self.before, self.step = STEPS[self.name]
        self.start = self.target.path("start")
        build_for(self.name, address(self.start, self.target.place))
        with self._open("whole") as store:
            self.old = dump(store)
            self.at_first = self.source.times.value, self.source.ids.value
            self.disk.arm(None)
            self.step(store)
            self.calls = self.disk.heal()
            self.new = dump(store)

    def _open(self, name: str) -> Store:
        path = copy_folder(self.start, self.target.path(name), self.target.place)
        self.disk.heal()
        self.source.reset()
        options = self.source.options()
        store = self.target.open_on(self.disk, path, **options)
        for earlier in self.before:
            earlier(store)
        return store

    def _told(self, error: HoldfastError | None) -> list[object]:
        """The states that the store may have after the call, given its error."""
        if error is None or any(words in str(error) for words in DONE):
            return [self.new]
        return [self.old] if NOT_DONE in str(error) else [self.old, self.new]

    def wrong(self, fault: Fault) -> Iterator[str]:
        """Make the call with a fault, and again if it failed; yields what is wrong."""
        with self._open("failed") as store:
            self.disk.arm(fault)
            error = failing(self.step, store)
            self.disk.heal()
            found = dump(store)
            if error is not None and error.code not in CODES:
                yield f"the error is {error!r}"
            if found not in self._told(error):
                yield f"{error!r} is not what was left, or it is something in between"
                return
            if found == self.old:
                self.source.times.value, self.source.ids.value = self.at_first
                self.step(store)
            if dump(store) != self.new:
                yield f"made again after {error!r} it is something else"
            yield from problems_of(store)
            if stuck := goes_on(store):
                yield stuck

    def wrong_later(self, fault: Fault) -> Iterator[str]:
        """Make the call with a fault, and save before any read; yields problems."""
        with self._open("failed") as store:
            self.disk.arm(fault)
            failing(self.step, store)
            self.disk.heal()
            if stuck := goes_on(store):
                yield stuck
            yield from problems_of(store)


def disk_failures(task: Task) -> Trials:
    """Let each call meet failures, each of them at some of its points."""
    ignore_repairs()
    disk = lazy_disk("failing")
    done = 0
    wrong: list[str] = []
    for number, name in enumerate(task.chance.sample(list(STEPS), len(STEPS))):
        call = FailingCall(name, task.target.at(name), disk)
        points = [*_points(call)]
        share = -(-(task.count - done) // (len(STEPS) - number))
        for what, fault in task.chance.choices(points, k=share):
            look = call.wrong_later if done % 2 else call.wrong
            wrong += [f"{name}, {what} at {fault.at}: {w}" for w in look(fault)]
            done += 1
            task.done(done)
        shutil.rmtree(call.target.folder)
    return Trials(done, wrong)


def _points(call: FailingCall) -> Iterator[tuple[str, Fault]]:
    for at in range(1, call.calls + 1):
        for what, kind in FAILURES.items():
            yield (
                what,
                Fault(at=at, effect=kind.effect, torn=kind.torn, lasting=kind.lasting),
            )
