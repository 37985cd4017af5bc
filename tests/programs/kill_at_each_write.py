"""Kills a process at every write, sync, truncate and delete of a call.

usage: kill_at_each_write.py FOLDER PLACE CALL...

PLACE is where in the folder the store is: a file, or with ``dir:`` in front a folder.

For each call one line of JSON: how many points there were and what went wrong at them.
"""

from __future__ import annotations

import os
import sys

from holdfast.selftest import Target
from holdfast.selftest._boundaries import Trial, make_trial
from holdfast.selftest._kills import ignore_repairs
from support.children import report
from support.effort import THOROUGH
from support.scenario import address, unpack_format_1


def trial_of(name: str, target: Target) -> Trial:
    """A call with its start; the migration begins with a file of format 1."""
    if name != "migrate":
        return make_trial(name, target, thorough=THOROUGH)
    trial = Trial(name, target, [lambda _: None], opening=True, thorough=THOROUGH)
    os.makedirs(trial.start)
    unpack_format_1(address(trial.start, target.place))
    trial.prepare()
    return trial


def main(folder: str, place: str, names: list[str]) -> None:
    ignore_repairs()
    target = Target("dir" if place.startswith("dir:") else "file", folder)
    for name in names:
        trial = trial_of(name, target.at(name))
        points = list(trial.points())
        wrong = [f"{what}: {w}" for what, fault in points if (w := trial.check(fault))]
        report({"call": name, "points": len(points), "wrong": wrong})


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
