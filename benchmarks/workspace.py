"""A snapshot of a folder with one changed file, beside a bare walk and beside git."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median

import holdfast
from benchmarks.measure import Bench, worked_in_all
from benchmarks.report import Row, times
from benchmarks.repository import committer

A_FOLDER = 100
TEXT = "a line of code that an agent has written\n" * 20


def workspace(bench: Bench) -> None:
    """Snapshots and restores of 10,000 and 100,000 files."""
    for files in (bench.amount(10_000, 2_000), bench.amount(100_000, 10_000)):
        with bench.place() as place:
            _measure(bench, Path(place), files)


def _measure(bench: Bench, place: Path, files: int) -> None:
    folder = place / "project"
    _fill(folder, files)
    git = committer(folder)
    with holdfast.open(place / "store.db") as store:
        thread, space = store.thread("agent"), holdfast.Workspace(folder)
        thread.save({"turn": 0}, files=space)
        edit = partial(_edit, folder / "d0" / "f0.py", count())
        works: dict[str, Callable[[], object]] = {
            "walk": partial(_walk, folder),
            "changed": lambda: thread.save({"turn": 1}, files=space),
            "restore": lambda: space.restore(thread, "@~1"),
            "quiet": lambda: thread.save({"turn": 2}, files=space),
            "git": git,
        }
        rounds = bench.amount(11, 5)
        found = _alternated(works, {"changed", "git"}, edit, rounds)
    walk = found["walk"]
    for name, work in (("changed", "one changed"), ("quiet", "none changed")):
        text = f"snapshot of {files:,} files, {work}, against a bare walk"
        shown = times(found[name], walk, "the walk")
        bench.rows.append(Row(text, shown, found[name] / walk, 1.5))
    text = f"the same, one changed, against git add and commit, {files:,} files"
    ours, theirs = found["changed"], found["git"]
    bench.rows.append(Row(text, times(ours, theirs, "git"), ours / theirs, 1))
    text = f"restore of one file of {files:,} against a bare walk"
    ours = found["restore"]
    bench.rows.append(Row(text, times(ours, walk, "the walk"), ours / walk, None))


def _alternated(
    works: dict[str, Callable[[], object]],
    edited: set[str],
    edit: Callable[[], object],
    rounds: int,
) -> dict[str, float]:
    """Processor time of works that take turns; before some of them a file is changed.

    It is the median: a median on the clock says more about other programs.
    """
    found: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(rounds + 1):
        for name, work in works.items():
            if name in edited:
                edit()
            taken = worked_in_all(work)
            if turn:  # the first is a rehearsal
                found[name].append(taken)
    return {name: median(each) for name, each in found.items()}


def _fill(folder: Path, files: int) -> None:
    for number in range(files):
        place = folder / f"d{number // A_FOLDER}"
        if number % A_FOLDER == 0:
            place.mkdir(parents=True)
        (place / f"f{number}.py").write_text(f"{number}\n{TEXT}")


def _edit(path: Path, turns: count[int]) -> None:
    path.write_text(f"turn {next(turns)}\n{TEXT}")


def _walk(folder: Path) -> int:
    found, folders = 0, [os.fspath(folder)]
    while folders:
        with os.scandir(folders.pop()) as listing:
            for item in listing:
                if item.is_dir(follow_symlinks=False):
                    folders.append(item.path)
                else:
                    item.stat(follow_symlinks=False)
                    found += 1
    return found
