"""Frameworks with an environment of their own: each beside the stores that it ships."""

from __future__ import annotations

import subprocess
from pathlib import Path
from statistics import median
from typing import Any

import orjson

from benchmarks.contest.units import volume
from benchmarks.measure import Bench
from benchmarks.report import Row, times

ROOT = Path(__file__).resolve().parent.parent
# So many turns stand for the end of a conversation.
SOME = 20
TIMES = {
    "last turns": "turns",
    "processor time of last turns": "worked",
    "load": "loads",
}


def frameworks(bench: Bench) -> None:
    """A conversation with each store of each framework, every turn durable."""
    for module in sorted(Path(__file__).parent.glob("frameworks/*.py")):
        name = module.stem
        if name not in {"__init__", "measured"}:
            _compare(bench, name, _measured(bench, name))


def _measured(bench: Bench, name: str) -> dict[str, Any]:
    folder = Path(bench.folder) / name
    folder.mkdir()
    ended = subprocess.run(
        [
            ROOT / f".venv-{name}" / "bin" / "python",
            "-m",
            f"benchmarks.frameworks.{name}",
            folder,
            str(bench.amount(500, 60)),
        ],
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
    )
    told: dict[str, Any] = orjson.loads(ended.stdout)
    return told


def _compare(bench: Bench, framework: str, told: dict[str, Any]) -> None:
    ours = told["ours"]
    for peer in told["theirs"]:
        about = f"{framework}, {len(ours['turns'])} turns, beside {peer['name']}"
        sizes = f"{volume(ours['size'])}; {volume(peer['size'])}"
        bench.rows.append(Row(f"{about}: bytes", sizes, ours["size"] / peer["size"]))
        for what, some in TIMES.items():
            one, other = (median(m[some][-SOME:]) for m in (ours, peer))
            shown = times(one, other, peer["name"])
            bench.rows.append(Row(f"{about}: {what}", shown, one / other))
        if peer["lost"] is not None:
            lost = f"{ours['lost']} of 100; {peer['lost']} of 100"
            row = Row(f"{about}: lost updates", lost, float(ours["lost"]), 0)
            bench.rows.append(row)
