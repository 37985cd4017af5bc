"""Runs rows of the selftest on stores that are sound or break a promise.

usage: selftest_rows.py KIND FOLDER SABOTAGE:ROW:COUNT...

For each row one line of JSON: its name, the verdict, and examples of what was wrong.
"""

from __future__ import annotations

import os
import sys

from holdfast.selftest import ROWS, Job, run_jobs
from support.children import report
from support.sabotage import SABOTAGES

# Seconds, for a row that hangs: a crowded machine needs a part of them.
LIMIT = 150


def main(kind: str, folder: str, wanted: list[str]) -> None:
    rows = {row.name: row for row in ROWS}
    jobs = []
    for text in wanted:
        sabotage, name, count = text.split(":")
        place = os.path.join(folder, f"{sabotage} {name}")
        os.mkdir(place)
        target = SABOTAGES[sabotage](kind, place)
        jobs.append(Job(rows[name], target, int(count), limit=LIMIT))
    for result in run_jobs(jobs, processes=2):
        report(
            {
                "row": result.row.name,
                "verdict": result.verdict,
                "count": result.count,
                "examples": result.examples,
            }
        )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
