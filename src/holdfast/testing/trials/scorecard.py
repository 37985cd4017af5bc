"""The rows of the scorecard, and running them in temporary folders."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Generator, Sequence

from holdfast.errors import NotFound, Unsupported
from holdfast.testing.trials.boundaries import boundaries
from holdfast.testing.trials.damage import bit_rot, scopes_rescued
from holdfast.testing.trials.disk_failures import disk_failures
from holdfast.testing.trials.endurance import clocks, endurance
from holdfast.testing.trials.fidelity import fidelity
from holdfast.testing.trials.foreign_tools import foreign_tools
from holdfast.testing.trials.grants import grants
from holdfast.testing.trials.hostile import code_execution, names
from holdfast.testing.trials.hostile_files import hostile_files
from holdfast.testing.trials.kills import kills
from holdfast.testing.trials.loop import loop
from holdfast.testing.trials.network import network
from holdfast.testing.trials.power import power_cuts
from holdfast.testing.trials.processes import Finished, Job, Progress, Result, run_jobs
from holdfast.testing.trials.rivals import compare_and_swap, history
from holdfast.testing.trials.secrecy import encryption, erasure
from holdfast.testing.trials.server import ended_connections, hung_server
from holdfast.testing.trials.sharing import sharing
from holdfast.testing.trials.tampering import tampering
from holdfast.testing.trials.task import ALL, FILE, SERVER, Effort, Row, Target

ONE = (FILE,)

# number, name, trials of a quick and of a full run
ROWS = (
    Row(
        1,
        "kills",
        "no acknowledged save is lost when its writer is killed",
        "kills",
        quick=60,
        full=10_000,
        run=kills,
        kinds=ALL,
    ),
    Row(
        2,
        "boundaries",
        "a call killed at any write was made or was not",
        "points",
        quick=40,
        full=1_500,
        run=boundaries,
    ),
    Row(
        3,
        "power-cuts",
        "no acknowledged save is lost when the power fails",
        "cuts",
        quick=120,
        full=1_000,
        run=power_cuts,
    ),
    Row(
        4,
        "disk-failures",
        "a full or broken disk gives a true error, and nothing is half done",
        "points",
        quick=60,
        full=2_000,
        run=disk_failures,
    ),
    Row(
        5,
        "compare-and-swap",
        "of rivals for one version one wins and the others are told",
        "saves",
        quick=160,
        full=8_000,
        run=compare_and_swap,
        kinds=ALL,
    ),
    Row(
        6,
        "history",
        "reads and appends of many processes agree with one order",
        "operations",
        quick=1_000,
        full=20_000,
        run=history,
        kinds=ALL,
    ),
    Row(
        7,
        "ended-connections",
        "a save repeated by its id after a lost connection is there once",
        "connections",
        quick=20,
        full=200,
        run=ended_connections,
        kinds=(SERVER,),
    ),
    Row(
        8,
        "hung-server",
        "every call ends in time when the server hangs",
        "stops",
        quick=2,
        full=20,
        run=hung_server,
        kinds=(SERVER,),
    ),
    Row(
        9,
        "foreign-tools",
        "another SQLite that opens the file loses nothing",
        "uses",
        quick=12,
        full=200,
        run=foreign_tools,
        kinds=ONE,
    ),
    Row(
        10,
        "sharing",
        "forks, threads and cancelled tasks lose nothing",
        "saves",
        quick=300,
        full=9_000,
        run=sharing,
        kinds=ALL,
    ),
    Row(
        11,
        "clocks",
        "the newest is what was saved last, whatever the clock says",
        "saves",
        quick=200,
        full=1_000,
        run=clocks,
        kinds=ALL,
    ),
    Row(
        12,
        "bit-rot",
        "nothing wrong is read from damaged files, and verify finds the damage",
        "damages",
        quick=40,
        full=2_200,
        run=bit_rot,
    ),
    Row(
        13,
        "tampering",
        "changes made without the key are noticed",
        "changes",
        quick=40,
        full=1_000,
        run=tampering,
        kinds=ONE,
    ),
    Row(
        14,
        "code-execution",
        "stored bytes cannot make code run",
        "blobs",
        quick=20_000,
        full=1_000_000,
        run=code_execution,
        kinds=ONE,
    ),
    Row(
        15,
        "names",
        "hostile names reach nothing but their own thread",
        "names",
        quick=200,
        full=50_000,
        run=names,
        kinds=ALL,
    ),
    Row(
        16,
        "fidelity",
        "a value comes back equal, types included, or is refused",
        "values",
        quick=120,
        full=2_000,
        run=fidelity,
        kinds=ALL,
    ),
    Row(
        17,
        "erasure",
        "of what was erased nothing is left, and late writers are refused",
        "erasures",
        quick=10,
        full=100,
        run=erasure,
    ),
    Row(
        18,
        "encryption",
        "an encrypted store shows nothing, and only its key opens it",
        "stores",
        quick=10,
        full=200,
        run=encryption,
    ),
    Row(
        19,
        "network",
        "without the token nothing is served",
        "requests",
        quick=60,
        full=2_000,
        run=network,
        kinds=ONE,
    ),
    Row(
        20,
        "endurance",
        "the log stays small beside readers, and backups are whole",
        "saves",
        quick=2_000,
        full=100_000,
        run=endurance,
    ),
    Row(
        21,
        "scopes-rescued",
        "a salvage has every undamaged thread of every scope under its name",
        "salvages",
        quick=20,
        full=400,
        run=scopes_rescued,
    ),
    Row(
        22,
        "loop",
        "a killed agent loses no result, and no call is made twice or forgotten",
        "kills",
        quick=24,
        full=1_000,
        run=loop,
        kinds=ALL,
    ),
    Row(
        23,
        "grants",
        "a grant is used once, whoever is killed and whatever is taken back",
        "kills",
        quick=20,
        full=1_000,
        run=grants,
        kinds=ALL,
    ),
    Row(
        24,
        "files",
        "no list, intent or link of others writes outside of a folder",
        "forgeries",
        quick=100,
        full=10_000,
        run=hostile_files,
    ),
)


STORES = ("file", "dir")
# Seconds after which a row counts as hung.
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
    """Run the rows of the scorecard; returns the result of each.

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
    """Targets in a temporary folder, which is removed afterwards with their schemas."""
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
