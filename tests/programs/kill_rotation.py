"""Kills a process at every write of a rotation of keys, and looks which key fits.

usage: kill_rotation.py FOLDER

One line of JSON: how many points there were and what went wrong at them.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from functools import partial

import holdfast
from holdfast import HoldfastError
from holdfast.testing.faults import Fault, FaultyDisk, kill
from holdfast.testing.trials.children import Child
from support.report import report

OLD, NEW = bytes(32), bytes(range(32))
PLACES = ("{}/store.db", "dir:{}/store")


def rotate(url: str, at: int, tell: Callable[[object], None]) -> None:
    disk = FaultyDisk("killing", syncing=False)
    with disk.open(url, key=OLD) as store:
        disk.arm(Fault(at=at, effect=kill))
        store.rotate_key(NEW)
        disk.heal()
        tell("done")
    disk.remove()


def opens(url: str, key: bytes) -> bool:
    try:
        with holdfast.open(url, key=key) as store:
            store.thread("chat").append(messages=["more"])
            return store.verify().ok
    except HoldfastError:
        return False


def main(folder: str) -> None:
    points, wrong = 0, []
    for place in PLACES:
        at, was_killed = 0, True
        while was_killed:
            at += 1
            work = os.path.join(folder, str(points))
            url = place.format(work)
            with holdfast.open(url, key=OLD, make_folders=True) as store:
                store.thread("chat").append(messages=["first"])
            child = Child(partial(rotate, url, at))
            done = child.wait()
            was_killed = child.was_killed
            fits = [opens(url, key) for key in (OLD, NEW)]
            expected = [[False, True]] if done else [[True, False], [False, True]]
            if fits not in expected:
                wrong.append(f"{place} killed at {at}: {fits}")
            points += 1
            shutil.rmtree(work)
    report({"points": points, "wrong": wrong})


if __name__ == "__main__":
    main(sys.argv[1])
