"""Appends entries, each once; the session's summary is saved in the same checkpoint."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any, cast

import msgspec
from claude_agent_sdk import (
    SessionKey,
    SessionStoreEntry,
    SessionSummaryEntry,
    fold_session_summary,
)

from holdfast.adapters.claude_agent_sdk._entries import Entries, keys_of, missing
from holdfast.backends import UNSET, Checkpoint, Start, Unset
from holdfast.errors import Conflict, NotFound
from holdfast.operations import Context, OpenedCheckpoint
from holdfast.operations.claude import LENGTH, MESSAGES, Transcript, apart, together
from holdfast.operations.threads import (
    AmendDraft,
    Amendment,
    ListsDraft,
    NextState,
    journal,
    loaded,
    save,
)
from holdfast.operations.values import HEAD, Blocks

SUMMARY, MTIME = "summary", "mtime"
# Kinds of checkpoints: those that add a message, and the others.
APPEND, NOTE = "append", "bookkeeping"
# Another writer was first: read the stored entries again.
_OVERTAKEN = {"entry_taken", "head_moved", "thread_deleted", "thread_missing"}
MICROSECONDS = 1000


class _NotOurs(Exception):
    """The head was not appended here, so the journal may not know all ids."""


class Batch(msgspec.Struct, frozen=True):
    """Entries for a transcript."""

    transcript: Transcript
    entries: Entries

    @property
    def thread(self) -> str:
        """The thread to append to."""
        return self.transcript.thread


async def append(context: Context, batch: Batch) -> None:
    """Append the entries that the transcript does not have, all of them or none."""
    while not (
        await _append_all(context, batch) or await _append_missing(context, batch)
    ):
        pass


async def _append_all(context: Context, batch: Batch) -> bool:
    """Append, unless an entry is or may be stored already; reads no entry."""

    def amend(before: dict[str, Any] | None) -> Amendment:
        before = before or {}
        data = _folded(batch.transcript, before.get(SUMMARY), batch.entries)
        return _amendment(context, batch, before, data)

    draft = _AppendDraft(batch.thread, amend)
    try:
        await save.save(context, batch.thread, draft, _how(batch, batch.entries))
    except _NotOurs:
        return False
    except Conflict as conflict:
        if conflict.code != "entry_taken":
            raise
        return False
    return True


async def _append_missing(context: Context, batch: Batch) -> bool:
    """Append the missing entries; False if another writer changes the transcript."""
    try:
        found = await loaded(context, batch.thread, HEAD)
    except NotFound:
        return False
    stored = cast("Entries", together(found.values))
    added = Batch(batch.transcript, missing(stored, batch.entries))
    known = await journal.recorded(context, batch.thread, None)
    data = _folded(batch.transcript, None, [*stored, *added.entries])
    amendment = _amendment(context, added, _counted(found.values), data)
    how = _how(batch, [*stored, *added.entries], known, found.checkpoint)
    try:
        if added.entries:
            draft = AmendDraft((), lambda _: amendment)
            await save.save(context, batch.thread, draft, how)
    except Conflict as conflict:
        if conflict.code not in _OVERTAKEN:
            raise
        return False
    return True


class _AppendDraft(AmendDraft):
    """An amendment of a state that was appended to the same thread."""

    def __init__(self, thread: str, amend: Any) -> None:
        super().__init__((SUMMARY, MTIME, LENGTH), amend)
        self.thread = thread

    async def plan(
        self, context: Context, parent: OpenedCheckpoint | None, blocks: Blocks
    ) -> NextState:
        # A fork begins with an empty journal, and an import or an edit may have brought
        # entries that no journal knows.
        if parent is not None and not _is_ours(parent.head, self.thread):
            raise _NotOurs
        return await super().plan(context, parent, blocks)


def _is_ours(head: Checkpoint, thread: str) -> bool:
    return head.thread == thread and head.kind in {APPEND, NOTE}


def _how(
    batch: Batch,
    entries: Iterable[SessionStoreEntry],
    known: Container[str] = (),
    expect: Checkpoint | Unset = UNSET,
) -> save.Options:
    """The options of a save; records the ids that ``known`` does not have."""
    return save.options(
        start=Start(kind=batch.transcript.kind, anew=True),
        kind=APPEND if _lists(batch, 0)[MESSAGES] else NOTE,
        once={key: True for key in keys_of(entries) if key not in known},
        expect=expect,
    )


def _amendment(
    context: Context, batch: Batch, before: Mapping[str, Any], data: dict[str, Any]
) -> Amendment:
    """The changes that a save of a batch makes; ``data`` is the new summary."""
    length = before.get(LENGTH, 0)
    lists = {name: added for name, added in _lists(batch, length).items() if added}
    values: dict[str, object] = {LENGTH: length + len(lists.get(MESSAGES, ()))}
    if batch.transcript.subpath is None:
        now = context.clock() // MICROSECONDS
        values[MTIME] = max(now, before.get(MTIME, 0) + 1)
        if data != before.get(SUMMARY):
            values[SUMMARY] = data
    return Amendment(values, ListsDraft(lists))


def _counted(values: Mapping[str, Any]) -> dict[str, Any]:
    """Some values of a state; other writers may have changed its messages."""
    return {MTIME: values.get(MTIME, 0), LENGTH: len(values.get(MESSAGES, ()))}


def _lists(batch: Batch, length: int) -> dict[str, list[Any]]:
    return apart(cast("list[dict[str, Any]]", batch.entries), length)


def _folded(
    transcript: Transcript, data: dict[str, Any] | None, entries: Entries
) -> dict[str, Any]:
    """The summary of a session after more entries; only the SDK interprets it."""
    if transcript.subpath is not None:
        return {}  # a subagent has none
    key: SessionKey = {
        "project_key": transcript.project,
        "session_id": transcript.session,
    }
    before: SessionSummaryEntry | None = None
    if data is not None:
        before = {"session_id": transcript.session, "mtime": 0, "data": data}
    return fold_session_summary(before, key, entries)["data"]
