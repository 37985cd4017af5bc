"""A whole run, from the choice of stores to a document."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from benchmarks.contest.chart import Bar, chart
from benchmarks.contest.contest import Contest, Progress
from benchmarks.contest.disk import sync_time
from benchmarks.contest.entrant import raw_bytes
from benchmarks.contest.environment import environment
from benchmarks.contest.figures import (
    Figures,
    Ratios,
    Recorded,
    Size,
    broken_promises,
    losses,
)
from benchmarks.contest.peers import PEERS, Peer
from benchmarks.contest.units import duration
from holdfast.errors import Unsupported


@dataclass(frozen=True, slots=True)
class Report:
    """What was measured, by the key of the store, and why others were not."""

    size: Size
    environment: dict[str, str]
    measured: dict[str, Figures]
    not_measured: dict[str, str]

    @property
    def is_good(self) -> bool:
        """Whether all of ours were measured and kept what they had acknowledged."""
        ours = [key for key in self.not_measured if PEERS[key].is_ours]
        failed = [key for key in ours if not PEERS[key].install]
        return not failed and not broken_promises(self.measured.values())

    def ratios(self, figures: Figures) -> Ratios:
        """Figures against ours for the same work, nothing if they are ours."""
        ours = self.measured.get(figures.peer.ours)
        return {} if ours is None or ours is figures else figures.ratios(ours)

    def ratios_twice(self, figures: Figures) -> Ratios:
        """The same at twice as many turns."""
        ours = self.measured.get(figures.peer.ours)
        if ours is None or ours is figures or not (figures.twice and ours.twice):
            return {}
        return figures.twice.ratios(ours.twice)

    def losses(self) -> list[tuple[Figures, Ratios]]:
        """The stores that do better than ours, and in what."""
        return list(losses(self.measured))

    def document(self) -> dict[str, object]:
        """All of it, for programs."""
        return {
            "turns": self.size.turns,
            "raw_bytes": raw_bytes(self.size.turns),
            "environment": self.environment,
            "stores": [self._store(figures) for figures in self.measured.values()],
            "losses": {f.peer.key: _keys(ratios) for f, ratios in self.losses()},
            "not_measured": self.not_measured,
        }

    def _store(self, figures: Figures) -> dict[str, object]:
        peer, twice = figures.peer, figures.twice
        return {
            "store": peer.key,
            "name": peer.name,
            "group": peer.group,
            "history": peer.history,
            **_recorded(figures.recorded),
            "first_load_seconds": figures.first_load,
            "last_ten_seconds": figures.last_ten,
            "acknowledged": figures.acknowledged,
            "lost": figures.lost,
            "after_kill": figures.after_kill,
            "compared_with": peer.ours,
            "ratios": _keys(self.ratios(figures)),
            "twice": None if twice is None else _recorded(twice),
        }

    def svg(self) -> str:
        """The sizes on disk as a chart."""
        bars = [
            Bar(_title(f), f.recorded.disk_bytes, f.recorded.ratio, f.peer.is_ours)
            for f in self.measured.values()
        ]
        return chart(bars, turns=self.size.turns, raw=raw_bytes(self.size.turns))


def measure(
    peers: Iterable[Peer], size: Size, at: str | None, progress: Progress
) -> Report:
    """Measure in a new folder on the disk of another one; it is removed at the end."""
    if sys.platform == "win32":
        raise Unsupported("processes cannot be measured and killed here; use WSL")
    chosen = list(peers)
    missing = {peer.key: peer.install for peer in chosen if peer.install}
    present = [peer for peer in chosen if not peer.install]
    packages = {package for peer in present for package in peer.packages}
    facts = environment(packages) | dict(_git())
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-", dir=at) as folder:
        before, load = sync_time(folder), os.getloadavg()[0]
        figures, problems = Contest(present, folder, size, progress).run()
        after = sync_time(folder)
    facts["fdatasync"] = (
        f"{duration(before)} before the run, {duration(after)} after it"
    )
    facts["load average"] = f"{load:.1f} before the run"
    return Report(size, facts, figures, missing | problems)


def _recorded(recorded: Recorded) -> dict[str, object]:
    return {
        "turns": recorded.turns,
        "stopped": recorded.stopped,
        "disk_bytes": recorded.disk_bytes,
        "first_turns_seconds": recorded.first_turns,
        "last_turns_seconds": recorded.last_turns,
    }


def _keys(ratios: Ratios) -> Ratios:
    return {name.replace(" ", "_"): ratio for name, ratio in ratios.items()}


def _git() -> Iterator[tuple[str, str]]:
    if shutil.which("git"):
        asked = subprocess.run(
            ["git", "version"],
            capture_output=True,
            check=True,
            text=True,
        )
        yield "git", asked.stdout.split()[2]


def _title(figures: Figures) -> str:
    """The name of a bar."""
    history = "" if figures.peer.history else ", no history"
    stopped = f", {figures.recorded.turns} turns" if figures.recorded.stopped else ""
    return f"{figures.peer.title}{history}{stopped}"
