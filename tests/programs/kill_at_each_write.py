"""Kills a process at the writes, syncs, truncates and deletes of a call.

usage: kill_at_each_write.py FOLDER PLACE CALL...

PLACE is where in the folder the store is: a file, or with ``dir:`` in front a folder.

For each call one line of JSON: how many points there were, how many of them were tried
and what went wrong at these: all of a migration, half of another call, and with
HOLDFAST_THOROUGH all of every call.
"""

from __future__ import annotations

import gzip
import os
import shutil
import sys
from typing import TypeAlias

from holdfast.testing.faults import Fault
from holdfast.testing.trials import Target
from holdfast.testing.trials.boundaries import Trial, make_trial
from holdfast.testing.trials.kills import ignore_repairs
from holdfast.testing.trials.scenario import address
from support.effort import THOROUGH, seed_of
from support.folders import FIXTURES
from support.report import report

FORMAT_1 = FIXTURES / "format-1" / "agents.db.gz"
Point: TypeAlias = tuple[str, Fault]


def trial_of(name: str, target: Target) -> Trial:
    """A call with its start; the migration begins with a file of format 1."""
    if name != "migrate":
        return make_trial(name, target, thorough=THOROUGH)
    trial = Trial(name, target, [lambda _: None], opening=True, thorough=THOROUGH)
    os.makedirs(trial.start)
    path = address(trial.start, target.place)
    with gzip.open(FORMAT_1) as stored, open(path, "wb") as file:
        os.fchmod(file.fileno(), 0o600)
        shutil.copyfileobj(stored, file)
    trial.prepare()
    return trial


def half_of(points: list[Point], which: int) -> list[Point]:
    """Every other pair: one of a pair is torn and the other is not."""
    return [point for n, point in enumerate(points) if n // 2 % 2 == which]


def main(folder: str, place: str, names: list[str]) -> None:
    ignore_repairs()
    target = Target("dir" if place.startswith("dir:") else "file", folder)
    for name in names:
        trial = trial_of(name, target.at(name))
        points = list(trial.points())
        is_whole = THOROUGH or name == "migrate"
        tried = points if is_whole else half_of(points, seed_of(name) % 2)
        wrong = [f"{what}: {w}" for what, fault in tried if (w := trial.check(fault))]
        counts = {"points": len(points), "tried": len(tried)}
        report({"call": name, "wrong": wrong} | counts)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
