"""Two processes restore one folder at once, each to another checkpoint.

usage: rival_restores.py FOLDER ROUNDS

One line of JSON: whether the folder was one of both at the end, what the thread's files
and the folder's differ in, and what went wrong in the processes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import holdfast
from holdfast.testing.trials.children import Child
from holdfast.workspace import Workspace
from support.report import report
from support.workspaces import files_of, write

FILES = 20


def build(place: Path) -> list[dict[str, object]]:
    folder = place / "project"
    found: list[dict[str, object]] = []
    with holdfast.open(place / "store.db") as store:
        thread = store.thread("agent")
        for turn in ("first", "second"):
            for number in range(FILES):
                write(folder / f"{number % 3}" / f"{number}.txt", f"{turn} {number}")
            thread.save({}, files=Workspace(folder), label=turn)
            found.append(files_of(folder))
    return found


def restore(place: Path, label: str, rounds: int) -> None:
    with holdfast.open(place / "store.db") as store:
        workspace = Workspace(place / "project", busy_timeout=60)
        for _ in range(rounds):
            workspace.restore(store.thread("agent"), f"label:{label}")


def main(place: Path, rounds: int) -> None:
    both = build(place)
    children = [
        Child(lambda tell, label=label: tell(restore(place, label, rounds) or "done"))
        for label in ("first", "second")
    ]
    wrong = [child for child in children if child.wait() != ["done"]]
    with holdfast.open(place / "store.db") as store:
        workspace = Workspace(place / "project")
        kept = store.thread("agent").files().entries == workspace.scan().tree.entries
    is_whole = files_of(place / "project") in both
    report({"whole": is_whole, "kept": kept, "wrong": len(wrong)})


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
