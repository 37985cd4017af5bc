"""Runs rows of the selftest on stores that are sound or break a promise.

usage: selftest_rows.py FOLDER SABOTAGE:ROW:COUNT:STORE...

A count of 0 is that of a quick run. For each row one line of JSON: its name, the kind
of store, the verdict, and examples of what was wrong.
"""

from __future__ import annotations

import os
import sys

from holdfast.testing.trials import ROWS, Job, run_jobs
from support.report import report
from support.sabotage import SABOTAGES

# Seconds, for a row that hangs: a crowded machine needs a part of them.
LIMIT = 150


def main(folder: str, wanted: list[str]) -> None:
    rows = {row.name: row for row in ROWS}
    jobs = []
    for number, text in enumerate(wanted):
        sabotage, name, count, store = text.split(":", 3)
        place = os.path.join(folder, str(number))
        os.mkdir(place)
        target = SABOTAGES[sabotage](store, place)
        row = rows[name]
        trials = int(count) or row.wanted("quick", target.kind)
        jobs.append(Job(row, target, trials, limit=LIMIT))
    for result in run_jobs(jobs, processes=2):
        report(
            {
                "row": result.row.name,
                "kind": result.kind,
                "verdict": result.verdict,
                "count": result.count,
                "examples": result.examples,
            }
        )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
