"""Reads and changes the conversation of a session; each change is a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from holdfast.adapters.openai_agents._paused_run import (
    COMPACTION,
    SessionChange,
    is_unanswered,
    next_run,
    run_after,
    without_answered,
)
from holdfast.backends import UNSET, Checkpoint, Start, ThreadKey, ThreadRecord, Unset
from holdfast.conversations import counts_of, tally, tally_of
from holdfast.errors import Conflict, NotFound, Unstorable
from holdfast.operations import Context, OpenedCheckpoint
from holdfast.operations.threads import (
    AmendDraft,
    Amendment,
    ListsDraft,
    Reference,
    StateDraft,
    loaded,
    moves,
    read_listed,
    read_values,
    save,
)
from holdfast.operations.transcripts import (
    KIND,
    PAUSED_RUN,
    SUMMARY,
    Ending,
    EndingDraft,
    Summary,
    Untouched,
    fields_of,
    missing,
    summary_after,
    summary_without,
    thread_of,
    transcript_tail,
)
from holdfast.operations.values import HEAD, Tail, codec

Items = list[dict[str, Any]]


class ConversationKey(msgspec.Struct, frozen=True):
    """The conversation of a session; owner and agent are set when it begins."""

    id: str
    owner: str | None = None
    agent: str | None = None

    @property
    def thread(self) -> str:
        """The thread of the conversation."""
        return thread_of(self.id)

    @property
    def start(self) -> Start:
        """The owner, agent and kind that the thread is created with."""
        return Start(kind=KIND, owner=self.owner, agent=self.agent)


def checked(items: Sequence[object]) -> Items:
    """The items; `Unstorable` if one is not a dict."""
    for number, item in enumerate(items):
        if not isinstance(item, dict):
            kind = type(item).__name__
            raise Unstorable(
                f"items[{number}]",
                f"is no dict but {kind}; pass .model_dump(exclude_unset=True) or so",
            )
    return cast("Items", list(items))


# --- reading --------------------------------------------------------------------------


async def items(context: Context, key: ConversationKey, limit: int | None) -> Items:
    """The last items, or all, oldest first; none if there is no conversation."""
    if limit is None or limit < 0:
        return (await present(context, key)).items
    await admit(context, key)
    found = await transcript_tail.newest_messages(context, key.thread, limit)
    return cast("Items", found)


class StoredItems(msgspec.Struct, frozen=True, kw_only=True):
    """The items of one checkpoint with its paused run, and the thread they are in."""

    items: Items = []
    run: Mapping[str, Any] = {}
    summary: Summary | None = None
    head: Checkpoint | None = None
    thread: ThreadRecord | None = None


async def present(context: Context, key: ConversationKey) -> StoredItems:
    """All items and the paused run; none if there is no conversation."""
    await admit(context, key)
    try:
        found = await loaded(context, key.thread, HEAD)
    except NotFound:
        return StoredItems(thread=await context.find_thread(key.thread))
    state = found.values
    return StoredItems(
        items=cast("Items", state.get("messages", [])),
        run=fields_of(state.get(PAUSED_RUN)),
        summary=Summary.of(state.get(SUMMARY)),
        head=found.checkpoint,
        thread=found.thread,
    )


async def find_run(context: Context, key: ConversationKey) -> Mapping[str, Any] | None:
    """The stored run, ``None`` if there is none.

    A run cannot be resumed, and is not returned, if something else than a session, such
    as a recorder, answered all its calls.
    """
    await admit(context, key)
    record = await context.find_thread(key.thread)
    if record is None or record.head is None:
        return None

    async def read(context: Context, record: ThreadRecord) -> Mapping[str, Any] | None:
        assert record.head is not None
        known = OpenedCheckpoint.of(record.head)
        found = await read_values(context, known, (PAUSED_RUN, "counts"))
        run = fields_of(found.get(PAUSED_RUN))
        open_ = tally_of(found.get("counts")).open
        return run if run and is_unanswered(run, open_) else None

    return await read_listed(context, record, read)


async def admit(context: Context, key: ConversationKey) -> None:
    """Raise `NotFound` if the conversation belongs to another owner."""
    if key.owner is not None:
        await _admit(context, key)


async def _admit(context: Context, key: ConversationKey) -> ThreadRecord | None:
    """The conversation's thread, also a deleted one; `NotFound` for other owners."""
    [record] = await context.backend.read([ThreadKey(key.thread)])
    is_living = record is not None and record.deleted_at is None
    if record and is_living and key.owner not in (None, record.owner):
        raise missing(key.id)
    return record


# --- changing -------------------------------------------------------------------------


async def change(
    context: Context, key: ConversationKey, wanted: SessionChange
) -> Checkpoint:
    """Make a change; `Untouched` if the conversation is not as expected."""
    if not wanted.only_adds:
        try:
            return await _save(context, key, _ending(wanted), wanted)
        except Untouched:
            if wanted.dropped is not None:
                raise
        # The conversation is empty or does not exist: there is nothing to drop.
        wanted = replace(wanted, dropped=())
    return await _save(context, key, _adding(context, wanted), wanted)


async def pop(
    context: Context, key: ConversationKey, metadata: bytes
) -> dict[str, Any] | None:
    """Drop the last item and return it, ``None`` if there is none."""
    popped: list[object] = []

    def decide(tail: Tail, before: Mapping[str, Any]) -> Ending:
        popped[:] = tail.newest(1)
        if not popped:
            raise Untouched
        left = tally_of(before.get("counts")).messages - 1
        summary = summary_without(Summary.of(before.get(SUMMARY)), popped, left)
        values = run_after(before.get(PAUSED_RUN), popped, ())
        return Ending(drop=1, values={**values, SUMMARY: _value(summary)})

    how = SessionChange(kind="pop", metadata=metadata)
    try:
        await _save(context, key, EndingDraft((PAUSED_RUN, SUMMARY), decide), how)
    except Untouched:
        return None
    return cast("dict[str, Any]", popped[0])


async def clear(context: Context, key: ConversationKey, metadata: bytes) -> None:
    """Drop all items; a conversation that was deleted is created again."""
    record = await _admit(context, key)
    if record is None:
        return
    try:
        if record.deleted_at is None:
            wanted = SessionChange(
                dropped=None, run=None, kind="clear", metadata=metadata
            )
            await change(context, key, wanted)
        else:
            await _begin(context, key)
    except Untouched:
        return


async def _begin(context: Context, key: ConversationKey) -> None:
    empty: dict[str, object] = {
        "created_at": context.clock(),
        "messages": [],
        "counts": counts_of(tally(())),
    }
    how = save.Options(expect=None, start=key.start)
    try:
        await save.save(context, key.thread, StateDraft(empty), how)
    except Conflict as conflict:
        if conflict.code != "head_moved":  # another writer created it first
            raise


async def fork(
    context: Context,
    key: ConversationKey,
    new: ConversationKey,
    at: Reference,
    effects: str | None,
) -> None:
    """A new conversation that shares its history with this one up to a checkpoint."""
    await admit(context, key)
    await moves.fork(context, key.thread, new.thread, at, effects)


async def _save(
    context: Context,
    key: ConversationKey,
    draft: AmendDraft | EndingDraft,
    wanted: SessionChange,
) -> Checkpoint:
    how = save.Options(
        kind=wanted.kind, metadata=wanted.metadata, id=wanted.id, start=key.start
    )
    while True:
        if key.owner is not None:
            record = await _admit(context, key)
            # Refuse to save if another owner begins the conversation between read and
            # save.
            how = replace(how, expect=UNSET if record else None)
        try:
            return await save.save(context, key.thread, draft, how)
        except Conflict as conflict:
            if conflict.code == "thread_deleted":
                raise _deleted(key) from None
            if how.expect is UNSET or conflict.code != "head_moved":
                raise


def _deleted(key: ConversationKey) -> Conflict:
    return Conflict(
        f"session {key.id!r} was deleted; clear_session() begins it again",
        code="thread_deleted",
        thread=key.thread,
    )


def _adding(context: Context, wanted: SessionChange) -> AmendDraft:
    """Adds items at the end without reading the stored ones."""
    now = context.clock()

    def longer(before: dict[str, Any] | None) -> Amendment:
        old = before or {}
        counted = tally_of(old.get("counts"))
        added = without_answered(wanted, fields_of(old.get(PAUSED_RUN)), counted.open)
        has_run = PAUSED_RUN in old
        is_same_run = wanted.run is UNSET or (wanted.run is None and not has_run)
        if not wanted.added and is_same_run:
            raise Untouched
        counted = counted.after(added)
        values: dict[str, object] = {} if before else {"created_at": now}
        values["counts"] = counts_of(counted)
        values |= next_run(wanted, counted.open, old)
        return Amendment(values, ListsDraft({"messages": added}))

    return AmendDraft(("counts", PAUSED_RUN), longer)


def _ending(wanted: SessionChange) -> EndingDraft:
    """Replaces items at the end, or all of them."""

    def decide(tail: Tail, before: Mapping[str, Any]) -> Ending:
        counted = tally_of(before.get("counts"))
        if wanted.at is not None and counted.messages != wanted.at:
            raise Untouched
        values = next_run(wanted, tally(wanted.added).open, before)
        values[SUMMARY] = _value(_summary(tail, wanted, counted.messages, before))
        if wanted.dropped is None:
            if not counted.messages and not wanted.added and PAUSED_RUN not in before:
                raise Untouched
            return Ending(drop=None, added=wanted.added, values=values)
        if _text(tail.newest(len(wanted.dropped))) != _text(list(wanted.dropped)):
            raise Untouched
        front = _unexpired(tail, wanted)
        if front is not None:
            return Ending(drop=None, added=[*front, *wanted.added], values=values)
        return Ending(drop=len(wanted.dropped), added=wanted.added, values=values)

    return EndingDraft((PAUSED_RUN, SUMMARY), decide)


def _summary(
    tail: Tail, wanted: SessionChange, count: int, before: Mapping[str, Any]
) -> Summary | None:
    """The summary after a change that drops items, with the calls it stands for."""
    if not isinstance(wanted.summary, Unset):
        return wanted.summary
    old = Summary.of(before.get(SUMMARY))
    dropped = count if wanted.dropped is None else len(wanted.dropped)
    left = count - dropped
    if wanted.kind != COMPACTION:
        return summary_without(old, islice(tail, dropped), left)
    stays = _unexpired(tail, wanted)
    expired = 0 if stays is None else left - len(stays)
    removed = tail.newest(dropped)
    if expired:
        removed += tail.newest(count)[:expired]
        # The items of the old summary are not the first ones any more; the new summary
        # stands for its calls.
        old = old and replace(old, items=count, below=None)
    return summary_after(old, removed, wanted.added, left - expired)


def _value(summary: Summary | None) -> object:
    return UNSET if summary is None else summary.value


def _text(items: list[object]) -> bytes:
    """The stored text, for comparisons: a NaN differs from itself, its text not."""
    return codec.encode(items, "items")


def _unexpired(tail: Tail, wanted: SessionChange) -> list[object] | None:
    """The unexpired items before the dropped ones; ``None`` if none expired."""
    if wanted.expired is None or wanted.dropped is None:
        return None
    front = list(tail.after(len(wanted.dropped)))[::-1]
    for number, item in enumerate(front):
        if not wanted.expired(item):
            return front[number:] if number else None
    return []
