"""Breaks a restore of files at every system call that changes or syncs something.

usage: kill_restore.py FOLDER HOW STATE

HOW is ``kill``, ``cut`` (what is not synced is lost), ``full`` (no space for one call)
or ``filled`` (no space from there on); STATE is 1 if the state is restored, too. One
line of JSON: how many calls there were, and what went wrong at which. Every fourth call
is tried, and with HOLDFAST_THOROUGH every one.
"""

from __future__ import annotations

import functools
import os
import shutil
import sys
from pathlib import Path

import holdfast
from holdfast.testing.trials.children import Child, Tell
from holdfast.workspace import Workspace
from support.effort import THOROUGH, seed_of
from support.report import report
from support.system_calls import BrokenCalls
from support.workspaces import files_of, write

FOR_GOOD = 1_000_000
UNKNOWN = {"notes.txt": (0o644, "in no snapshot")}


def build(place: Path) -> tuple[dict[str, object], dict[str, object]]:
    """A folder with two snapshots; gives the files of both."""
    folder = place / "project"
    write(folder / "changed.txt", "one")
    write(folder / "kind", "a file")
    write(folder / "old" / "gone.txt", "gone")
    (folder / "link").symlink_to("changed.txt")
    with holdfast.open(place / "store.db") as store:
        thread, workspace = store.thread("agent"), Workspace(folder)
        thread.save({"turn": 1}, files=workspace, label="first")
        first = files_of(folder)
        write(folder / "changed.txt", "two", 0o600)
        (folder / "kind").unlink()
        write(folder / "kind" / "inside.txt", "now a folder")
        shutil.rmtree(folder / "old")
        (folder / "link").unlink()
        write(folder / "new" / "made.txt", "made")
        thread.save({"turn": 2}, files=workspace)
        second = files_of(folder)
    write(folder / "notes.txt", "in no snapshot")
    return first | UNKNOWN, second | UNKNOWN


def restore(place: Path, broken: BrokenCalls, *, state: bool) -> None:
    with holdfast.open(place / "store.db") as store:
        thread, workspace = store.thread("agent"), Workspace(place / "project")
        broken.install()
        try:
            workspace.restore(thread, "label:first", state=state)
        except holdfast.HoldfastError as error:
            if error.code != "disk_full":
                raise
        finally:
            broken.remove()


def wrong(place: Path, first: object, second: object, *, state: bool) -> str | None:
    """What is not as it should be after the next opening."""
    folder = place / "project"
    with holdfast.open(place / "store.db") as store:
        thread, workspace = store.thread("agent"), Workspace(folder)
        found = files_of(folder)
        if found not in (first, second):
            return f"half: {found}"
        left = set(os.listdir(folder / ".holdfast")) - OWN
        if left:
            return f"left over: {left}"
        is_half = state and found == first and thread.load() != {"turn": 1}
        if is_half and not is_refused(thread, workspace):
            return "the files are back and the state is not"
        # No file was changed since, so a restore of the head succeeds as well.
        workspace.restore(thread, "@", state=state)
        there = workspace.scan().tree.entries
        if any(there.get(p) != e for p, e in thread.files().entries.items()):
            return "the files are not those of the head"
        workspace.restore(thread, "label:first", state=state, force=True)
        again, now = files_of(folder), thread.load()
        if again != first or (state and now != {"turn": 1}):
            return f"not repeated: {again}, {now}"
        workspace.scan()
    return None


OWN = {"lock", ".gitignore", "index", "restore"} | {
    name + end for name in ("undo", "unfinished") for end in ("", ".new")
}


def is_refused(thread: holdfast.Thread, workspace: Workspace) -> bool:
    """Whether nothing is saved before the state is where the files are."""
    try:
        thread.save({"turn": 3}, files=workspace)
    except holdfast.Conflict as error:
        return error.code == "restore_unfinished"
    return False


def main(place: Path, how: str, *, state: bool) -> None:
    template = place / "template"
    first, second = build(template)
    problems: list[str] = []
    calls, step = seed_of(how) % 4, 1 if THOROUGH else 4
    done: list[int] = []
    while not done or done[0] >= calls:
        calls += step
        trial = place / f"trial-{calls}"
        shutil.copytree(template, trial, symlinks=True)
        child = Child(functools.partial(work, trial, how, calls, state=state))
        done = child.wait()
        if not child.was_killed and not done:
            problems.append(f"{calls}: failed otherwise")
        problem = wrong(trial, first, second, state=state)
        if problem:
            problems.append(f"{calls}: {problem}")
        shutil.rmtree(trial)
    report({"calls": calls, "wrong": problems})


def work(place: Path, how: str, at: int, tell: Tell, *, state: bool) -> None:
    """Restore with one broken call; tells how many calls there were."""
    kind = "full" if how == "filled" else how
    broken = BrokenCalls(at, kind, lasting=FOR_GOOD if how == "filled" else 1)
    restore(place, broken, state=state)
    tell(broken.calls)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], state=sys.argv[3] == "1")
