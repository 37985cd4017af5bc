"""Reads and writes of a recorder: loads a conversation and saves new messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from holdfast._engine.cache import OpenedCheckpoint
from holdfast._engine.context import Context
from holdfast._engine.effects import ledger
from holdfast._engine.effects.calls import (
    JournaledCall,
    find_status,
    is_interrupted_elsewhere,
)
from holdfast._engine.effects.line import Line
from holdfast._engine.effects.lines import line_at
from holdfast._engine.records import agent_checkpoints as pins
from holdfast._engine.records import agents, conversations
from holdfast._engine.records.conversations import thread_of
from holdfast._engine.threads import moves, pending, save
from holdfast._engine.threads.anchors import name_successor
from holdfast._engine.threads.drafts import (
    AmendDraft,
    Amendment,
    ListsDraft,
    NextState,
    StateTexts,
    read_values_of,
)
from holdfast._engine.threads.lineage import Reference
from holdfast._engine.threads.load import loaded
from holdfast._engine.threads.pending import (
    NewPart,
    Pending,
    is_same,
    transcript_of,
)
from holdfast._engine.threads.references import head_moves
from holdfast._messages.attachments import Stored, kept, whole
from holdfast._messages.call_keys import key_of, position_of
from holdfast._messages.loose import fields_of, parts_of
from holdfast._messages.tally import Tally
from holdfast._messages.transcript import open_calls
from holdfast._port import CheckpointKey, Start
from holdfast._values.manifest import Value
from holdfast._values.records import UNSET, Checkpoint, ThreadRecord
from holdfast._values.reference import HEAD
from holdfast._values.rope import Blocks
from holdfast.agents import PRE_OPERATION
from holdfast.conversations import counts_of
from holdfast.effects import Effect
from holdfast.errors import Conflict

MOVED: Final = "transcript_moved"


# --- loading --------------------------------------------------------------------------


class LoadRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The conversation to load, and the place to go on from.

    With ``discard`` the parts that no checkpoint has are forgotten if the recorder
    knows
    them: by ``known_keys``, the last of them by ``known_id``.
    """

    id: str
    at: Reference = HEAD
    owner: str | None = None
    discard: bool = False
    known_keys: tuple[str, ...] = ()
    known_id: str | None = None

    @property
    def thread(self) -> str:
        """The thread of the conversation."""
        return thread_of(self.id)

    def forgets(self, found: Pending) -> bool:
        """True if the parts that no checkpoint has are to be forgotten.

        Parts that another recorder has added meanwhile stay, unless this one goes back.
        """
        if self.at != HEAD:
            return True
        is_known = set(found.keys) <= set(self.known_keys)
        ids = {part.next_id for part in found.parts[-1:]}
        return self.discard and is_known and ids == {self.known_id}


class LoadedConversation(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation as it is stored, with what came after its last checkpoint.

    ``run`` is that of the newest message, ``saved_run`` that of the last checkpoint,
    which was made at ``saved_at``. ``results`` are what the journal has for its open
    calls, ``unknown`` the ids of those that began and did not end. ``before`` is the
    transcript that the next save expects to find. ``behind`` are the effects that a
    rewind or fork has just left behind.
    """

    messages: list[Stored]
    stored: int
    is_rewritten: bool
    run: dict[str, Any]
    saved_run: dict[str, Any]
    saved_at: int
    pending: Pending
    results: dict[str, object]
    unknown: frozenset[str]
    checkpoint: Checkpoint | None
    before: Value | None
    record: ThreadRecord
    behind: tuple[Effect, ...]


async def load(context: Context, request: LoadRequest) -> LoadedConversation | None:
    """A conversation, rewound to a checkpoint if need be, ``None`` if there is none."""
    record = await context.find_thread(request.thread)
    if record is None or (record.head is None and request.at != HEAD):
        if request.at != HEAD:
            raise conversations.missing(request.id)
        return None
    if request.owner is not None and record.owner != request.owner:
        raise conversations.missing(request.id)
    found = await pending.find_pending(context, record)
    gone = found.keys if request.forgets(found) else ()
    if request.at != HEAD:
        await moves.rewind(context, record.id, request.at)
        record = await context.get_thread(record.id)
        # What was recorded there before does not belong to the checkpoint either.
        gone += (await pending.find_pending(context, record)).keys
    if gone:
        await pending.forget(context, record.id, tuple(dict.fromkeys(gone)))
        found = await pending.find_pending(context, record)
    return await _loaded(context, record, found, forgets=bool(gone))


async def _loaded(
    context: Context, record: ThreadRecord, found: Pending, *, forgets: bool
) -> LoadedConversation:
    values: dict[str, Any] = {}
    checkpoint: Checkpoint | None = None
    if record.head is not None:
        head = await loaded(context, record.id, HEAD)
        values, checkpoint = head.values, head.checkpoint
    messages = whole(values)
    stored = len(messages)
    saved_run: dict[str, Any] = dict(fields_of(values.get("run")))
    run = saved_run
    for part in found.parts:
        messages[part.at :] = part.messages
        run = part.run
    next_id = found.parts[-1].next_id if found.parts else None
    line = line_at(record, checkpoint, next_id)
    results, unknown = await _outcomes(context, record, messages, line)
    return LoadedConversation(
        messages=messages,
        stored=stored,
        is_rewritten=any(part.at < stored for part in found.parts),
        run=run,
        saved_run=saved_run,
        saved_at=checkpoint.saved_at if checkpoint else record.created_at,
        pending=found,
        results=results,
        unknown=unknown,
        checkpoint=checkpoint,
        before=transcript_of(checkpoint) if checkpoint else None,
        record=record,
        behind=await _just_left_behind(context, record, line, forgets=forgets),
    )


async def _outcomes(
    context: Context, record: ThreadRecord, messages: list[Stored], line: Line
) -> tuple[dict[str, object], frozenset[str]]:
    """The journaled results of open calls, and the calls whose outcome is unknown."""
    found: dict[str, object] = {}
    unknown: set[str] = set()
    for call in open_calls(messages):
        key = key_of(messages, call.id)
        status = await find_status(context, record.id, key, line)
        if status.is_completed:
            found[call.id] = status.result
        elif status.is_interrupted or (
            status.begun is None
            and await is_interrupted_elsewhere(context, record, key, line)
        ):
            unknown.add(call.id)
    return found, frozenset(unknown)


async def _just_left_behind(
    context: Context, record: ThreadRecord, line: Line, *, forgets: bool
) -> tuple[Effect, ...]:
    """The effects since the head was saved, if the head was moved and not saved on.

    ``forgets`` says that what followed the head has just been forgotten.
    """
    if line.next_id is not None:
        return ()
    newest = await anext(head_moves(context, record.id), None)
    if not forgets and (newest is None or newest.kind == "save"):
        return ()
    behind = await ledger.in_force_behind(context, record.family, line)
    saved = record.head.seq if record.head else 0
    return tuple(effect for effect in behind if effect.seq > saved)


# --- saving ---------------------------------------------------------------------------


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """The messages of one save: those after ``stored``, or with ``rewrite`` all.

    ``before`` is the transcript that it must find, so that two recorders of one
    conversation do not mix their messages. ``is_retry`` says that an attempt to save
    with the same id has failed, which may have come after its commit.
    """

    conversation: str
    start: Start
    at: int
    messages: list[Stored]
    stored: int
    rewrite: bool
    before: Value | None
    tally: Tally
    run: dict[str, Any]
    how: save.Options
    is_retry: bool = False

    @property
    def thread(self) -> str:
        """The thread it goes to."""
        return thread_of(self.conversation)


async def flush(context: Context, batch: Batch) -> Checkpoint:
    """Save a batch, after what an earlier attempt may have saved."""
    if batch.is_retry:
        batch = await _after_attempt(context, batch)
    try:
        return await _save(context, batch)
    except Conflict as conflict:
        if conflict.code != MOVED:
            raise
    # The cache may have been out of date; without it the head is read.
    context.cache.take(batch.thread)
    return await _save(context, batch)


async def _after_attempt(context: Context, batch: Batch) -> Batch:
    """The batch without what a failed attempt has saved: an error can come after it."""
    record = await context.find_thread(batch.thread)
    assert batch.how.id is not None
    if record is None:
        return batch
    [found] = await context.backend.read([CheckpointKey(record.family, batch.how.id)])
    if found is None:
        return batch
    saved = await loaded(context, record.id, found)
    return replace(
        batch,
        stored=len(whole(saved.values)),
        before=transcript_of(found),
        how=replace(batch.how, id=context.new_id()),
    )


async def _save(context: Context, batch: Batch) -> Checkpoint:
    return await save.save(context, batch.thread, _Continuation(batch), batch.how)


async def keep(context: Context, new: NewPart, conversation: str) -> bool:
    """Make messages durable that no checkpoint has yet, as `pending.add_part`."""
    try:
        return await pending.add_part(context, new)
    except Conflict as conflict:
        if conflict.code != "head_moved":
            raise
        raise _moved(conversation, new.thread, conflict.found) from None


def _moved(conversation: str, thread: str, found: Checkpoint | None) -> Conflict:
    return Conflict(
        f"conversation {conversation!r} was changed by another writer; nothing was"
        " saved: call resume(discard=True) to load it, then add() the messages that are"
        " still wanted",
        code=MOVED,
        thread=thread,
        found=found,
    )


async def anchor_call(context: Context, made: JournaledCall) -> None:
    """Name the head as what has a call, if the checkpoint of the call was removed.

    Another worker may have gone on from there, and a prune come between. It is looked
    up after the call was recorded: a later prune names a successor by itself.
    """
    record, anchor = await context.find_thread(made.thread), made.anchor
    if record is None or record.head is None or anchor in (None, record.head.id):
        return
    [found] = await context.backend.read([CheckpointKey(record.family, anchor)])
    if found is not None:
        return
    values = await read_values_of(context, record.head, "messages")
    messages, id_ = parts_of(values.get("messages")), made.call.id
    if position_of(messages, id_) is not None and key_of(messages, id_) == made.key:
        await name_successor(context, made.thread, [anchor], record.head.id)


class _Continuation:
    """A batch as a draft; it refuses to continue another transcript than its own."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.kept = kept(batch.messages[0 if batch.rewrite else batch.stored :])
        self.draft = AmendDraft(("content_ids",), self._amended)

    async def plan(
        self, context: Context, parent: OpenedCheckpoint | None, blocks: Blocks
    ) -> NextState:
        found = parent.manifest.values.get("messages") if parent else None
        if not is_same(found, self.batch.before):
            head = parent.head if parent else None
            raise _moved(self.batch.conversation, self.batch.thread, head)
        return await self.draft.plan(context, parent, blocks)

    def matches(self, stored: StateTexts, before: StateTexts | None) -> bool:
        return self.draft.matches(stored, before)

    def _amended(self, before: dict[str, Any] | None) -> Amendment:
        known = (before or {}).get("content_ids", ())
        values: dict[str, object] = {
            "counts": counts_of(self.batch.tally),
            "run": self.batch.run or UNSET,
        }
        if before is None:
            values["created_at"] = self.batch.at
        if self.batch.rewrite:
            values |= {"content_ids": UNSET, "contents": UNSET}
            values |= self.kept.all_apart(known)
            return Amendment(values | {"messages": self.kept.messages})
        lists: dict[str, Sequence[object]] = {"messages": self.kept.messages}
        return Amendment(values, ListsDraft(lists | self.kept.apart(known)))


async def secure(context: Context, agent: str, tool: str) -> bool:
    """A checkpoint of the agent before a tool runs; False if there is no such agent."""
    if await context.find_thread(agents.thread_of(agent)) is None:
        return False
    await pins.create(
        context, agent, pins.CheckpointRequest(name=tool, kind=PRE_OPERATION)
    )
    return True
