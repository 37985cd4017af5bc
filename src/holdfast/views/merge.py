"""A merge as a document: the three checkpoints, what changes and what conflicts."""

from __future__ import annotations

from typing import Any

from holdfast._engine.threads.merge import Merge, file_lines
from holdfast._values.files import FileEntry
from holdfast._values.merge import ABSENT, MergeConflict
from holdfast.views.differences import change_documents
from holdfast.views.documents import checkpoint_document, plain


def merge_document(thread: str, found: Merge) -> dict[str, Any]:
    """A merge that was made, or its preview; ``checkpoint`` is the save, if any."""
    made = found.checkpoint
    return {
        "thread": thread,
        "base": found.base.id,
        "ours": found.ours.id,
        "theirs": found.theirs.id,
        "conflicts": [_conflict_document(one) for one in found.conflicts],
        "resolved": [_conflict_document(one) for one in found.resolved],
        "changes": change_documents(found.changes),
        "files": file_lines(found.file_changes),
        "checkpoint": checkpoint_document(made) if made else None,
    }


def _conflict_document(conflict: MergeConflict) -> dict[str, Any]:
    """A conflict; a side that does not have the value has no field."""
    sides = {
        "base": conflict.base,
        "ours": conflict.ours,
        "theirs": conflict.theirs,
    }
    held = {name: _side(value) for name, value in sides.items() if value is not ABSENT}
    return {"path": conflict.where, **held}


def _side(value: object) -> Any:
    if not isinstance(value, FileEntry):
        return plain(value)
    return {"size": value.size, "mode": value.mode, "sha256": value.digest.hex()}
