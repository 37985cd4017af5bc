"""All rows on all kinds of stores, in temporary folders that are removed."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Generator, Sequence

from holdfast.errors import NotFound, Unsupported
from holdfast.testing.trials.processes import Finished, Job, Progress, Result, run_jobs
from holdfast.testing.trials.row import Effort, Row
from holdfast.testing.trials.scorecard import ROWS
from holdfast.testing.trials.target import Target

STORES = ("file", "dir")
# A row that takes longer hangs: seconds.
LIMITS = {"quick": 120.0, "full": 3600.0}


def selftest(
    *,
    stores: Sequence[str] = STORES,
    effort: Effort = "quick",
    only: Sequence[str] = (),
    at: str | None = None,
    progress: Progress | None = None,
    finished: Finished | None = None,
) -> list[Result]:
    """Run the rows of the scorecard, and say what each came to.

    ``stores`` are ``"file"``, ``"dir"``, addresses of PostgreSQL servers, or schemes of
    other installed backends. ``only``
    are names or numbers of rows. ``at`` is the folder in which the temporary ones are
    made, by default that of the system. ``progress`` is called with percents,
    ``finished`` with each result as soon as it is there.
    """
    if not hasattr(os, "fork"):
        text = "the selftest kills processes that it forks, and this system has no fork"
        raise Unsupported(text)
    rows = [_row(name) for name in only] or list(ROWS)
    with _targets(stores, at) as targets:
        jobs = [
            Job(
                row,
                target.at(row.name),
                row.wanted(effort, target.kind),
                LIMITS[effort],
            )
            for row in rows
            for target in targets
            if row.applies_to(target.kind)
        ]
        results = run_jobs(
            jobs,
            processes=os.cpu_count() or 1,
            progress=progress,
            finished=finished,
        )
    done = {result.row.number for result in results}
    results += [_missing(row, effort) for row in rows if row.number not in done]
    return sorted(results, key=lambda result: result.row.number)


def _row(name: str) -> Row:
    for row in ROWS:
        if name in {row.name, str(row.number)}:
            return row
    names = ", ".join(row.name for row in ROWS)
    raise NotFound(f"there is no row {name!r}; the rows are {names}", code="no_row")


@contextlib.contextmanager
def _targets(stores: Sequence[str], at: str | None) -> Generator[list[Target]]:
    """Targets in a temporary folder; all that they made is removed afterwards."""
    folder = tempfile.mkdtemp(prefix="holdfast-selftest-", dir=at)
    targets: list[Target] = []
    try:
        for number, store in enumerate(stores):
            target = Target(store, folder).at(str(number))
            target.check()
            targets.append(target)
        yield targets
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        for target in targets:
            target.remove()


def _missing(row: Row, effort: Effort) -> Result:
    return Result(
        row=row,
        kind=" ".join(row.kinds),
        verdict="not run",
        wanted=row.wanted(effort, row.kinds[0]),
        note=f"needs --store {' or --store '.join(map(_example, row.kinds))}",
    )


def _example(kind: str) -> str:
    return "postgresql://..." if kind == "postgresql" else kind
