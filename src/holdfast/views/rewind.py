"""The preview of a rewind."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast._api.store import Store
from holdfast._engine.context import Context
from holdfast._engine.effects.behind import in_force
from holdfast._engine.effects.ledger import effects
from holdfast._engine.threads.file_changes import difference as file_difference
from holdfast._engine.threads.lineage import is_ancestor, resolve_in
from holdfast._engine.threads.load import load_any
from holdfast._values.file_diff import FileChange
from holdfast._values.records import Checkpoint, ThreadRecord
from holdfast._values.reference import HEAD
from holdfast.diff import Diff
from holdfast.effects import Effect
from holdfast.views.comparison import change_list
from holdfast.views.differences import change_documents, difference
from holdfast.views.documents import checkpoint_document, iso
from holdfast.views.effect_list import shown_effect
from holdfast.views.effects import effect_document
from holdfast.views.files import file_change_documents, shown_file_changes
from holdfast.views.references import Revision
from holdfast.views.showing import Showing
from holdfast.views.waiting import NOTHING, waits_of


class RewindPreview(msgspec.Struct, frozen=True, kw_only=True):
    """The changes that a rewind would make.

    ``steps`` is how far it goes back, ``None`` if the target is not on the line of the
    head. ``behind`` are the effects that the new head does not show. ``unsaved`` is the
    number of messages that no checkpoint has yet: they are passed over. ``files`` are
    those that the checkpoints have different; no folder is touched.
    """

    thread: str
    old: Checkpoint
    new: Checkpoint
    steps: int | None
    changes: Diff
    behind: list[Effect]
    unsaved: int
    files: tuple[FileChange, ...] = ()


def preview_rewind(store: Store, target: Revision) -> RewindPreview:
    """The changes that a rewind to the target would make."""
    return store.runner.run(rewind_preview, target.thread.id, target.checkpoint)


async def rewind_preview(
    context: Context, thread: str, target: Checkpoint | str
) -> RewindPreview:
    """The changes that a rewind of the thread would make."""
    record = await context.get_thread(thread)
    old = await resolve_in(context, record, HEAD)
    new = await resolve_in(context, record, target)
    is_move = old.id != new.id
    waiting = (await waits_of(context, [record]))[0] if is_move else NOTHING
    states = await load_any(context, old), await load_any(context, new)
    changes = difference(*states, bookkeeping=False)
    on_line = await is_ancestor(context, new, of=old)
    return RewindPreview(
        thread=thread,
        old=old,
        new=new,
        steps=old.step - new.step if on_line else None,
        changes=changes,
        behind=await _behind(context, record, new) if is_move else [],
        unsaved=waiting.unsaved,
        files=await file_difference(context, thread, old, new),
    )


async def _behind(
    context: Context, record: ThreadRecord, target: Checkpoint
) -> list[Effect]:
    return in_force(await effects(context, record.id, since=target))


def preview_document(preview: RewindPreview) -> dict[str, Any]:
    """The preview with every change and every effect; files if any differ."""
    files = file_change_documents(preview.files)
    document = {
        "dry_run": True,
        "thread": preview.thread,
        "from": checkpoint_document(preview.old),
        "to": checkpoint_document(preview.new),
        "steps": preview.steps,
        "unsaved_messages": preview.unsaved,
        "left_behind": [effect_document(effect) for effect in preview.behind],
        "changes": change_documents(preview.changes),
    }
    return {**document, "files": files} if files else document


class RewindQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A rewind that a person thinks about."""

    thread: str
    to: str


async def rewind_document(
    context: Context, query: RewindQuery, showing: Showing
) -> dict[str, Any]:
    """The preview as a viewer shows it."""
    found = await rewind_preview(context, query.thread, query.to)
    return {
        "thread": found.thread,
        "from": _end(found.old),
        "to": _end(found.new),
        "steps": found.steps,
        "unsaved_messages": found.unsaved,
        "left_behind": [
            shown_effect(effect, "left_behind", showing) for effect in found.behind
        ],
        **change_list(found.changes, showing),
        **shown_file_changes(found.files, showing),
    }


def _end(checkpoint: Checkpoint) -> dict[str, Any]:
    return {
        "id": checkpoint.id,
        "step": checkpoint.step,
        "at": iso(checkpoint.saved_at),
    }
