"""Fails if a layer's tests take fewer of its branches than they have to.

usage: coverage_floor.py REPORT, where REPORT was made by `coverage json`
"""

from __future__ import annotations

import json
import sys
from typing import Any

FLOOR = 95
LAYERS = ("_values", "_messages", "_port", "_engine", "_api")


def layer_of(path: str) -> str:
    """The folder of a file within the package."""
    return path.partition("/holdfast/")[2].partition("/")[0]


def share(files: list[dict[str, Any]]) -> float:
    """How many of a hundred branches of some files were taken."""
    taken = sum(file["summary"]["covered_branches"] for file in files)
    there = sum(file["summary"]["num_branches"] for file in files)
    return 100 * taken / there if there else 100


def missed(path: str, file: dict[str, Any]) -> str:
    branches = " ".join(f"{a}->{b}" for a, b in file["missing_branches"])
    return f"    {path}: {branches}"


def main(report: str) -> int:
    with open(report) as opened:
        files: dict[str, dict[str, Any]] = json.load(opened)["files"]
    too_low = 0
    for layer in LAYERS:
        own = {path: file for path, file in files.items() if layer_of(path) == layer}
        percent = share(list(own.values()))
        sys.stdout.write(f"{layer:<10} {percent:5.1f} % of the branches\n")
        if percent < FLOOR:
            too_low += 1
            lines = [missed(*found) for found in own.items() if share([found[1]]) < 100]
            sys.stdout.write("\n".join([f"  under {FLOOR} %:", *sorted(lines), ""]))
    return too_low


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
