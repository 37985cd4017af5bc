"""What a rewind changes, before it is made."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast._api.store import Store
from holdfast._values.records import Checkpoint
from holdfast.diff import Diff
from holdfast.effects import Effect
from holdfast.views.differences import change_documents
from holdfast.views.documents import checkpoint_document
from holdfast.views.effects import effect_document, left_behind_by_rewind
from holdfast.views.references import Revision, is_on_line
from holdfast.views.waiting import NOTHING, waiting_of


class RewindPreview(msgspec.Struct, frozen=True, kw_only=True):
    """What a rewind changes.

    ``steps`` is how far it goes back, ``None`` if the target is not on the line of the
    head. ``behind`` are the effects that the new head does not show. ``unsaved`` is the
    number of messages that no checkpoint has yet: they are passed over.
    """

    thread: str
    old: Checkpoint
    new: Checkpoint
    steps: int | None
    changes: Diff
    behind: list[Effect]
    unsaved: int


def preview_rewind(store: Store, target: Revision) -> RewindPreview:
    """What a rewind to a target changes."""
    thread, new = target.thread, target.checkpoint
    record = thread.about
    old = thread.get()
    is_move = old.id != new.id
    waiting = waiting_of(store, record) if record and is_move else NOTHING
    return RewindPreview(
        thread=thread.id,
        old=old,
        new=new,
        steps=old.step - new.step if is_on_line(thread, new) else None,
        changes=thread.diff(old, new),
        behind=left_behind_by_rewind(thread, new),
        unsaved=waiting.unsaved,
    )


def preview_document(preview: RewindPreview) -> dict[str, Any]:
    """The preview with every change and every effect."""
    return {
        "dry_run": True,
        "thread": preview.thread,
        "from": checkpoint_document(preview.old),
        "to": checkpoint_document(preview.new),
        "steps": preview.steps,
        "unsaved_messages": preview.unsaved,
        "left_behind": [effect_document(effect) for effect in preview.behind],
        "changes": change_documents(preview.changes),
    }
