"""The files of checkpoints, as documents."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from holdfast._engine.context import Context
from holdfast._port import CheckpointKey
from holdfast._values.file_diff import FileChange
from holdfast._values.records import Checkpoint
from holdfast._values.runs import BEFORE_FILES
from holdfast.views.growth import manifest_of
from holdfast.views.showing import Showing

MOST_FILES = 200


def file_change_documents(changes: Iterable[FileChange]) -> list[dict[str, object]]:
    """One document a changed file; texts with the lines of a unified diff."""
    return [
        {
            "op": change.op,
            "path": path_text(change.path),
            "old_size": change.old_size,
            "new_size": change.new_size,
            "lines": list(change.lines),
        }
        for change in changes
    ]


def path_text(path: str) -> str:
    """A path as documents write it: bytes that are not UTF-8 as ``\\xe9``."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def shown_file_changes(
    changes: Sequence[FileChange], showing: Showing
) -> dict[str, Any]:
    """The first changed files, and how many more there are; empty without changes."""
    if not changes:
        return {}
    files = [
        {
            "op": change.op,
            "path": showing.line(path_text(change.path)),
            "old_size": change.old_size,
            "new_size": change.new_size,
            "lines": showing.text("\n".join(change.lines)),
        }
        for change in changes[:MOST_FILES]
    ]
    return {"files": files, "more_files": len(changes) - len(files)}


async def with_other_files(
    context: Context, checkpoints: Sequence[Checkpoint]
) -> frozenset[str]:
    """The ids of the checkpoints that have other files than their parents."""
    having = [c for c in checkpoints if BEFORE_FILES in c.runs]
    known = {c.id: c for c in checkpoints}
    missing = [c for c in having if c.parent and c.parent not in known]
    keys = [CheckpointKey(c.family, c.parent) for c in missing if c.parent]
    for parent in await context.backend.read(keys) if keys else ():
        if parent is not None:
            known[parent.id] = parent
    return frozenset(c.id for c in having if _top(c) != _top(known.get(c.parent or "")))


def _top(checkpoint: Checkpoint | None) -> bytes | None:
    """The digest of the list of a checkpoint's files."""
    files = manifest_of(checkpoint).files if checkpoint else None
    return files.digest if files else None
