"""`python -m benchmarks turns REVISION`: this tree against an earlier one, in turns.

Two processes, one a tree, do the same work by turns, so that what else the machine does
happens to both. Compared is processor time, on files whose disk is not waited for.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.report import table
from benchmarks.turns_worker import WORKS

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 1.02


class Worker:
    """A process that has imported one tree."""

    def __init__(self, source: Path, folder: Path) -> None:
        folder.mkdir()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.turns_worker", str(folder)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(source)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def turn(self, work: str) -> float:
        """Seconds of processor time for one block of a work."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(work, file=self._process.stdin, flush=True)
        return float(self._process.stdout.readline())

    def end(self) -> None:
        self._process.communicate()


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the ratio of each work; 1 if one is over the limit."""
    options = _options(arguments)
    with tempfile.TemporaryDirectory(prefix="holdfast-turns-") as name:
        folder = Path(name)
        before = folder / "source"
        _check_out(options.revision, before)
        sides = [
            Worker(ROOT / "src", folder / "now"),
            Worker(before / "src", folder / "before"),
        ]
        samples: list[dict[str, list[float]]] = [{w: [] for w in WORKS} for _ in sides]
        for number in range(options.rounds):
            order = (0, 1) if number % 2 else (1, 0)
            for work in WORKS:
                for side in order:
                    samples[side][work].append(sides[side].turn(work))
        for worker in sides:
            worker.end()
    ratios = {w: median(samples[0][w]) / median(samples[1][w]) for w in WORKS}
    rows = [(w, f"{ratio:.3f}") for w, ratio in ratios.items()]
    print(table([("work", f"against {options.revision}"), *rows]))
    return int(max(ratios.values()) > LIMIT)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks turns", description=__doc__)
    parser.add_argument("revision", help="a commit of this repository")
    parser.add_argument("--rounds", type=int, default=60)
    return parser.parse_args(arguments)


def _check_out(revision: str, folder: Path) -> None:
    folder.mkdir()
    archive = ["git", "-C", str(ROOT), "archive", revision, "src"]
    packed = subprocess.run(archive, check=True, stdout=subprocess.PIPE).stdout
    subprocess.run(["tar", "-x", "-C", str(folder)], check=True, input=packed)
