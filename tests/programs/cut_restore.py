"""Cuts the power of a real file system at every call of a restore of files.

usage: cut_restore.py FOLDER KIND STATE SYNCED

KIND is the kind of the file system, which is made on an image in FOLDER and mounted for
this process alone; STATE is 1 if the state is restored, too; SYNCED is 0 if the restore
does not wait for the disk. One line of JSON: how many cuts there were, and what went
wrong at which. The last one comes after the restore.
"""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
import signal
import sys
from pathlib import Path

import holdfast
from holdfast.testing.trials.children import Child, Tell
from holdfast.testing.trials.file_systems import (
    mount_point,
    mounted,
    mounted_again,
    shut_down,
)
from holdfast.testing.trials.task import Target
from programs.kill_restore import build, restore, wrong
from support.report import report
from support.system_calls import BrokenCalls


class CutCalls(BrokenCalls):
    """Cuts the power before one of the calls; the process ends with it."""

    def __init__(self, at: int, place: str, *, synced: bool) -> None:
        super().__init__(at, "kill")
        self._place = place
        if not synced:
            self._real["fsync"] = lambda _: None

    def _meet(self, name: str) -> None:
        self.calls += 1
        if self.calls == self.at:
            shut_down(self._place)
            os.kill(os.getpid(), signal.SIGKILL)


def work(place: str, at: int, tell: Tell, *, state: bool, synced: bool) -> None:
    broken = CutCalls(at, place, synced=synced)
    restore(Path(place, "trial"), broken, state=state)
    tell(broken.calls)


def settle(place: str) -> None:
    """Make all that was written durable, on this file system only."""
    descriptor = os.open(place, os.O_RDONLY)
    try:
        assert ctypes.CDLL(None).syncfs(descriptor) == 0
    finally:
        os.close(descriptor)


def main(folder: Path, kind: str, *, state: bool, synced: bool) -> None:
    template, target = folder / "template", Target("file", str(folder))
    first, second = build(template)
    said, place = mounted(target, kind), mount_point(target, kind)
    assert not said, said
    trial, problems, cuts = Path(place, "trial"), list[str](), 0
    done: list[int] = []
    while not done:
        cuts += 1
        shutil.copytree(template, trial, symlinks=True)
        settle(place)
        restored = functools.partial(work, place, cuts, state=state, synced=synced)
        done = Child(restored).wait()
        if done:
            shut_down(place)
        said = mounted_again(target, kind)
        assert not said, said
        # A restore that has ended is there.
        before = first if done else second
        try:
            problem = wrong(trial, first, before, state=state)
        except holdfast.HoldfastError as error:
            problem = repr(error)
        if problem:
            problems.append(f"{cuts}: {problem}")
        shutil.rmtree(trial)
    report({"cuts": cuts, "wrong": problems})


if __name__ == "__main__":
    state, synced = (word == "1" for word in sys.argv[3:])
    main(Path(sys.argv[1]), sys.argv[2], state=state, synced=synced)
