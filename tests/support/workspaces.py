"""Folders of files for tests."""

from __future__ import annotations

import os
from pathlib import Path

from inner.values import OWN_FOLDER


def write(path: Path, text: str = "x", mode: int | None = None) -> None:
    """Write a file, and the folders it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    if mode is not None:
        path.chmod(mode)


def files_of(folder: Path) -> dict[str, object]:
    """All files of a folder with mode and text, links, and empty folders."""
    found: dict[str, object] = {}
    for place, folders, names in os.walk(folder):
        if OWN_FOLDER in folders:
            folders.remove(OWN_FOLDER)
        here = Path(place)
        for name in [*names, *folders]:
            path = here / name
            if path.is_symlink():
                found[str(path.relative_to(folder))] = os.readlink(path)
            elif not path.is_dir():
                mode = path.stat().st_mode & 0o777
                found[str(path.relative_to(folder))] = (mode, path.read_text())
        if not names and not folders and here != folder:
            found[str(here.relative_to(folder))] = "folder"
    return found


def wait_for_the_clock(folder: Path) -> None:
    """Wait until a change would give a file other times than it has now."""
    now = max(path.lstat().st_ctime_ns for path in folder.iterdir())
    probe = folder.parent / "clock"
    while not probe.exists() or probe.stat().st_mtime_ns <= now:
        probe.touch()
