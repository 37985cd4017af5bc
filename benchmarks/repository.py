"""Git beside ours: commits of a folder."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path


def committer(folder: Path) -> Callable[[], object]:
    """Commits all of a folder; the repository is beside it, so that no walk sees it."""
    beside = folder.parent / "repository"
    options = [f"--git-dir={beside}", f"--work-tree={folder}"]
    who = ["-c", "user.name=bench", "-c", "user.email=bench@example.org"]
    # What git tidies up in the background is in the way of removing the folder.
    who += ["-c", "gc.auto=0", "-c", "maintenance.auto=false"]

    def git(*arguments: str) -> None:
        subprocess.run(
            ["git", *options, *who, *arguments], check=True, stdout=subprocess.DEVNULL
        )

    def commit() -> None:
        git("add", "-A")
        git("commit", "-q", "-m", "turn")

    git("init", "-q")
    (beside / "info" / "exclude").write_text(".holdfast\n")
    commit()
    return commit
