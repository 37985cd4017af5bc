"""`python -m benchmarks turns REVISION`: this tree against an earlier one, in turns.

Two processes, one a tree, do the same work by turns, so that what else the machine does
happens to both. Compared is processor time, on files whose disk is not waited for; with
``--postgres`` the time that passes, on a private server, beside a wire and behind one
of the length that ``--trip`` says.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple
from urllib.parse import urlsplit

import psycopg

from benchmarks.report import table
from benchmarks.server import private_server
from benchmarks.turns_worker import ON_FILES, ON_POSTGRES
from benchmarks.wire import Wire

ROOT = Path(__file__).resolve().parent.parent
LIMIT, REMOTE_LIMIT = 1.02, 1.10
# The one work of which PostgreSQL's limit speaks.
LIMITED = "append"


class Cost(NamedTuple):
    """Seconds for one block of a work: those passed, and the processor's."""

    passed: float
    worked: float


class Worker:
    """A process that has imported one tree."""

    def __init__(self, source: Path, place: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.turns_worker", place],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(source)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def turn(self, work: str) -> Cost:
        """What one block of a work costs."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(work, file=self._process.stdin, flush=True)
        return Cost(*map(float, self._process.stdout.readline().split()))

    def end(self) -> None:
        self._process.communicate()


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the ratios of each work; 1 if one is over the limit."""
    options = _options(arguments)
    with tempfile.TemporaryDirectory(prefix="holdfast-turns-") as name:
        before = Path(name) / "source"
        _check_out(options.revision, before)
        sources = (ROOT / "src", before / "src")
        if options.postgres:
            return _on_postgres(sources, options)
        sides = []
        for source, side in zip(sources, ("now", "before"), strict=True):
            (Path(name) / side).mkdir()
            sides.append(Worker(source, str(Path(name) / side)))
        ratios = _ratios(sides, options.work or ON_FILES, options.rounds)
        rows = [(work, f"{ratio.worked:.3f}") for work, ratio in ratios.items()]
        print(table([("work", f"against {options.revision}"), *rows]))
        return int(max(ratio.worked for ratio in ratios.values()) > LIMIT)


def _on_postgres(sources: tuple[Path, Path], options: argparse.Namespace) -> int:
    rows = [("work", "round trip", "time passed", "processor's")]
    is_over = False
    with private_server() as url:
        for trip in (0.0, options.trip):
            with _databases(url, trip) as places:
                sides = [Worker(*side) for side in zip(sources, places, strict=True)]
                ratios = _ratios(sides, options.work or ON_POSTGRES, options.rounds)
            rows += [
                (work, f"{trip:g} ms", f"{r.passed:.3f}", f"{r.worked:.3f}")
                for work, r in ratios.items()
            ]
            if trip and LIMITED in ratios:
                is_over = ratios[LIMITED].passed > REMOTE_LIMIT
    print(table(rows))
    return int(is_over)


@contextlib.contextmanager
def _databases(url: str, trip: float) -> Iterator[list[str]]:
    """A database for each side, ``trip`` milliseconds away and back."""
    parts = urlsplit(url)
    assert parts.port is not None
    names = [f"{side}_{round(trip * 1000)}" for side in ("now", "before")]
    with psycopg.connect(url, autocommit=True) as connection:
        for name in names:
            connection.execute(f"create database {name}".encode())
    with contextlib.closing(Wire(parts.port, trip / 1000)) as wire:
        netloc = parts.netloc if not trip else f"{parts.username}@127.0.0.1:{wire.port}"
        yield [parts._replace(netloc=netloc, path=name).geturl() for name in names]


def _ratios(
    sides: Sequence[Worker], works: Collection[str], rounds: int
) -> dict[str, Cost]:
    """What each work costs the first side, as a share of what it costs the second."""
    samples: list[dict[str, list[Cost]]] = [{w: [] for w in works} for _ in sides]
    for number in range(rounds):
        order = (0, 1) if number % 2 else (1, 0)
        for work in works:
            for side in order:
                samples[side][work].append(sides[side].turn(work))
    for worker in sides:
        worker.end()
    return {
        work: Cost(
            *(
                median(getattr(cost, clock) for cost in samples[0][work])
                / median(getattr(cost, clock) for cost in samples[1][work])
                for clock in Cost._fields
            )
        )
        for work in works
    }


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks turns", description=__doc__)
    parser.add_argument("revision", help="a commit of this repository")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--work", action="append", help="only this one, or these")
    parser.add_argument("--postgres", action="store_true", help="on a private server")
    parser.add_argument(
        "--trip", type=float, default=1.0, help="milliseconds to the server and back"
    )
    return parser.parse_args(arguments)


def _check_out(revision: str, folder: Path) -> None:
    folder.mkdir()
    archive = ["git", "-C", str(ROOT), "archive", revision, "src"]
    packed = subprocess.run(archive, check=True, stdout=subprocess.PIPE).stdout
    subprocess.run(["tar", "-x", "-C", str(folder)], check=True, input=packed)
