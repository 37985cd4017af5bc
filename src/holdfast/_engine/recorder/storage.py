"""What a recorder reads and writes: it loads a conversation and saves what is new."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from holdfast._engine.cache import OpenedCheckpoint
from holdfast._engine.context import Context
from holdfast._engine.recorder.calls import find_status, key_of
from holdfast._engine.records import agent_checkpoints as pins
from holdfast._engine.records import agents, conversations
from holdfast._engine.records.conversations import thread_of
from holdfast._engine.threads import moves, save
from holdfast._engine.threads.drafts import (
    AmendDraft,
    Amendment,
    ListsDraft,
    NextState,
    StateTexts,
)
from holdfast._engine.threads.lineage import Reference
from holdfast._engine.threads.load import loaded
from holdfast._messages.attachments import Stored, kept, whole
from holdfast._messages.tally import Tally
from holdfast._messages.transcript import open_calls
from holdfast._port import CheckpointKey, Start
from holdfast._values.manifest import Value, decode_manifest
from holdfast._values.records import UNSET, Checkpoint
from holdfast._values.reference import HEAD
from holdfast._values.rope import Blocks, Rope
from holdfast.agents import PRE_OPERATION
from holdfast.conversations import counts_of
from holdfast.errors import Conflict

MOVED: Final = "transcript_moved"


# --- loading --------------------------------------------------------------------------


class LoadedConversation(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation as it is stored, and the results of its open calls in the journal.

    ``before`` is the transcript that the next save expects to find.
    """

    messages: list[Stored]
    run: dict[str, Any]
    results: dict[str, object]
    checkpoint: Checkpoint
    before: Value | None
    agent: str | None
    owner: str | None


async def load(
    context: Context, id_: str, at: Reference, owner: str | None
) -> LoadedConversation | None:
    """A conversation, rewound to a checkpoint if need be, ``None`` if there is none."""
    record = await context.find_thread(thread_of(id_))
    if record is None or record.head is None:
        if at != HEAD:
            raise conversations.missing(id_)
        return None
    if owner is not None and record.owner != owner:
        raise conversations.missing(id_)
    if at != HEAD:
        await moves.rewind(context, record.id, at)
    found = await loaded(context, record.id, HEAD)
    messages = whole(found.values)
    return LoadedConversation(
        messages=messages,
        run=found.values.get("run", {}),
        results=await _results(context, record.id, messages),
        checkpoint=found.checkpoint,
        before=transcript_of(found.checkpoint),
        agent=record.agent,
        owner=record.owner,
    )


def transcript_of(checkpoint: Checkpoint) -> Value | None:
    """The messages of a checkpoint as its manifest has them."""
    return decode_manifest(checkpoint).values.get("messages")


async def _results(
    context: Context, thread: str, messages: list[Stored]
) -> dict[str, object]:
    """The journaled results of calls that have no answer in the transcript."""
    found: dict[str, object] = {}
    for call in open_calls(messages):
        status = await find_status(context, thread, key_of(messages, call.id))
        if status.is_completed:
            found[call.id] = status.result
    return found


# --- saving ---------------------------------------------------------------------------


class SaveAttempt(msgspec.Struct, frozen=True):
    """A save whose outcome is not known yet; ``count`` messages were in it."""

    id: str
    count: int


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """What one save writes: the messages after ``stored``, or with ``rewrite`` all.

    ``before`` is the transcript that it must find, so that two recorders of one
    conversation do not mix their messages.
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
    attempts: tuple[SaveAttempt, ...] = ()

    @property
    def thread(self) -> str:
        """The thread it goes to."""
        return thread_of(self.conversation)


async def flush(context: Context, batch: Batch) -> Checkpoint:
    """Save a batch, after what an earlier attempt may have saved."""
    batch = await _after_attempts(context, batch)
    try:
        return await _save(context, batch)
    except Conflict as conflict:
        if conflict.code != MOVED:
            raise
    # The cache may have been out of date; without it the head is read.
    context.cache.take(batch.thread)
    return await _save(context, batch)


async def _after_attempts(context: Context, batch: Batch) -> Batch:
    """The batch without what a failed attempt has saved: an error can come after it."""
    record = await context.find_thread(batch.thread) if batch.attempts else None
    for attempt in reversed(batch.attempts) if record else ():
        assert record is not None
        key = CheckpointKey(record.family, attempt.id)
        [found] = await context.backend.read([key])
        if found is not None:
            return msgspec.structs.replace(
                batch, stored=attempt.count, before=transcript_of(found)
            )
    return batch


async def _save(context: Context, batch: Batch) -> Checkpoint:
    return await save.save(context, batch.thread, _Continuation(batch), batch.how)


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
        if _identity(found) != _identity(self.batch.before):
            raise Conflict(
                f"conversation {self.batch.conversation!r} was changed by another"
                " writer; nothing was saved: call resume(discard=True) to load it, then"
                " add() the messages that are still wanted",
                code=MOVED,
                thread=self.batch.thread,
                found=parent.head if parent else None,
            )
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


def _identity(value: Value | None) -> object:
    """What is equal for two values if their bytes are."""
    return (value.size, value.chain) if isinstance(value, Rope) else value


async def secure(context: Context, agent: str, tool: str) -> bool:
    """A checkpoint of the agent before a tool runs; False if there is no such agent."""
    if await context.find_thread(agents.thread_of(agent)) is None:
        return False
    await pins.create(
        context, agent, pins.CheckpointRequest(name=tool, kind=PRE_OPERATION)
    )
    return True
