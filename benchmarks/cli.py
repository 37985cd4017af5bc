"""What the command line costs: starting it, and looking at a long thread."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial

import holdfast
from benchmarks.measure import Bench, alternate
from benchmarks.report import Row, times

SHORT, LONG = 100, 100_000


def cli(bench: Bench) -> None:
    """Starts against an empty interpreter; a long log against a short one."""
    _started(bench, "holdfast --version", 2.5)
    with bench.place() as folder:
        path = _fill(os.path.join(folder, "short.db"), SHORT)
        _started(bench, "holdfast log chat", 9, "--store", path)
        _log(bench, folder)


def _started(bench: Bench, command: str, limit: float, *options: str) -> None:
    ours, empty = alternate(
        partial(_run, "-m", *command.split(), *options),
        partial(_run, "-c", "pass"),
        rounds=bench.amount(40, 15),
    ).medians
    work = f"`{command}` against an empty interpreter"
    bench.rows.append(Row(work, times(ours, empty, "empty"), ours / empty, limit))


def _log(bench: Bench, folder: str) -> None:
    lengths = (bench.amount(LONG, 10_000), SHORT)
    paths = [_fill(os.path.join(folder, f"{n}.db"), n) for n in lengths]
    for options in ((), ("--graph",)):
        log = ("-m", "holdfast", "log", "chat", "-n", "20", *options, "--store")
        long, short = alternate(
            partial(_run, *log, paths[0]),
            partial(_run, *log, paths[1]),
            rounds=bench.amount(20, 7),
        ).medians
        work = f"`{' '.join(log[1:-1])}` of {lengths[0]:,} checkpoints against {SHORT}"
        measured = times(long, short, f"{SHORT}")
        bench.rows.append(Row(work, measured, long / short, 1.2))


def _fill(path: str, length: int) -> str:
    with holdfast.open(path, durability="normal") as store:
        thread = store.thread("chat")
        thread.save({"messages": []})
        for n in range(1, length):
            thread.append(messages=[n])
    return path


def _run(*arguments: str) -> None:
    # The note beside an answer that there is more is not of interest.
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
