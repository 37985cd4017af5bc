"""Putting a checkpoint, and the writes of tasks, into a store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    CheckpointMetadata,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.base import Checkpoint as Put
from msgspec.structs import replace

from holdfast._engine.context import Context
from holdfast._engine.threads import save
from holdfast._port import Receipt, ThreadKey, Turn, Write
from holdfast._values.records import (
    UNSET,
    Checkpoint,
    Entry,
    ThreadRecord,
    encode_metadata,
)
from holdfast._values.reference import checked_id
from holdfast.adapters.langgraph._draft import PutDraft
from holdfast.adapters.langgraph._get import find_checkpoint, find_thread
from holdfast.adapters.langgraph._names import (
    Place,
    given,
    id_in,
    made_at,
    place_of,
)
from holdfast.adapters.langgraph._task_writes import Call
from holdfast.adapters.langgraph._types import Types
from holdfast.errors import Conflict

# What another writer may have done in the meantime.
_CHANGED = frozenset({"head_moved", "thread_missing", "thread_deleted"})


class Putting(msgspec.Struct, frozen=True):
    """A checkpoint on its way into its thread.

    ``parent`` is the one that LangGraph says it goes on from; ``follows`` says that
    this has to be the newest.
    """

    place: Place
    draft: PutDraft
    how: save.Options
    parent: str | None
    follows: bool

    @property
    def id(self) -> str:
        """The id that LangGraph gave it."""
        assert self.how.id is not None
        return self.how.id


def putting(
    types: Types,
    config: RunnableConfig,
    checkpoint: Put,
    metadata: CheckpointMetadata,
    new_versions: ChannelVersions,
) -> Putting:
    """What a call of ``put`` asks for."""
    place = place_of(config)
    parent = id_in(config)
    kept = types.plain(dict(get_checkpoint_metadata(config, metadata)), "metadata")
    how = save.Options(id=checked_id(checkpoint["id"]), metadata=encode_metadata(kept))
    draft = PutDraft(types, checkpoint, new_versions, parent)
    return Putting(place, draft, how, parent, _follows(config, place, parent))


def _follows(config: RunnableConfig, place: Place, parent: str | None) -> bool:
    """Whether a put goes on from what its run found, and not from what it asked for.

    The configs of runs are complete, and their metadata say which checkpoint was asked
    for. Subgraphs are left alone: when a run begins at an earlier checkpoint they do
    so too, and whether two runs are at work shows in the graph around them.
    """
    if place.ns or "recursion_limit" not in config:
        return False
    by_namespace: Mapping[str, str] = given(config).get("checkpoint_map") or {}
    asked = config.get("metadata", {}).get("checkpoint_id")
    return parent is None or parent not in (asked, by_namespace.get(place.ns))


async def put(context: Context, asked: Putting) -> Checkpoint:
    """Save a checkpoint as the newest of its thread."""
    how = _on_known(context, asked) or await _on_found(context, asked)
    while True:
        try:
            return await save.save(context, asked.place.name, asked.draft, how)
        except Conflict as conflict:
            if conflict.code not in _CHANGED:
                raise
        how = await _on_found(context, asked)


def _on_known(context: Context, asked: Putting) -> save.Options | None:
    """On top of what was saved last here, most likely still the newest."""
    known = context.cache.take(asked.place.name)
    if known is None:
        return None
    context.cache.give(asked.place.name, known)
    is_next = known.head.id == asked.parent
    return replace(asked.how, expect=known.head) if is_next else None


async def _on_found(context: Context, asked: Putting) -> save.Options:
    """On top of what is there; refuses a put that would hide the work of others."""
    record = await find_thread(context, asked.place)
    if record is None or record.head is None:
        return await _at_the_beginning(context, asked, record)
    parent = await find_checkpoint(context, record, asked.parent)
    if parent is None or parent.seq != record.head.seq:
        if asked.follows and not await find_checkpoint(context, record, asked.id):
            raise _moved(asked, record.head)
        if parent is not None:
            turned = _turned(context, record, parent)
            commit = _together(context, turned)
            return replace(asked.how, expect=parent, commit=commit)
    return replace(asked.how, expect=record.head)


async def _at_the_beginning(
    context: Context, asked: Putting, record: ThreadRecord | None
) -> save.Options:
    """As the first checkpoint of a thread, which may have been deleted before."""
    place = asked.place
    if record is not None and record.deleted_at is not None and asked.parent:
        raise deleted(place)
    how = replace(asked.how, expect=None, start=place.start(anew=True))
    if not place.ns:
        return how
    guards = await _guards(context, place, asked.id)
    return replace(how, commit=_together(context, *guards))


def _together(context: Context, *first: Write) -> Callable[[Write], Awaitable[Receipt]]:
    """Commits a write behind others, or none of them."""

    async def commit(write: Write) -> Receipt:
        *_, receipt = await context.backend.commit([*first, write])
        return receipt

    return commit


def _turned(context: Context, record: ThreadRecord, target: Checkpoint) -> Write:
    return Write(
        thread=record.id,
        at=context.clock(),
        expect=record.head,
        turn=Turn("rewind", target),
    )


async def _guards(context: Context, place: Place, checkpoint: str) -> tuple[Write, ...]:
    """What must hold when a namespace begins: that its thread was not deleted."""
    keys = [ThreadKey(place.root), ThreadKey(place.name)]
    root, own = await context.backend.read(keys)
    for record in (root, own):
        if record is not None and is_late(record, checkpoint):
            raise deleted(place)
    if root is None or root.head is None or root.deleted_at is not None:
        return ()
    return (Write(thread=place.root, at=context.clock(), expect=root.head),)


def is_late(record: ThreadRecord, checkpoint: str) -> bool:
    """Whether a checkpoint was made before its thread was deleted, as far as known."""
    if record.deleted_at is None:
        return False
    made = made_at(checkpoint)
    return made is None or made <= record.deleted_at


def deleted(place: Place) -> Conflict:
    """A write that comes after its thread was deleted."""
    return Conflict(
        f"thread {place.thread!r} was deleted while a run was at work on it, and what"
        " the run saves is refused; begin a new run",
        code="thread_deleted",
        thread=place.thread,
    )


def _moved(asked: Putting, head: Checkpoint) -> Conflict:
    begun = "an empty thread" if asked.parent is None else repr(asked.parent)
    return Conflict(
        f"another run has saved to thread {asked.place.thread!r}: this one goes on"
        f" from {begun}, and the newest is {head.id!r}; run it again, or pass a"
        " checkpoint_id to branch off",
        code="head_moved",
        thread=asked.place.thread,
        expected=asked.parent,
        found=head,
    )


# --- the writes of tasks --------------------------------------------------------------


async def put_writes(context: Context, call: Call) -> None:
    """Keep what a task wrote, on a checkpoint that may come later.

    What is there stays, but for the marks of an interrupt, an error and the like.
    """
    while call.writes:
        entries = call.entries(context.clock())
        first, *_ = await _record(context, call, entries)
        if first.data == entries[0].data:
            return
        call = call.beyond(first)


async def _record(
    context: Context, call: Call, entries: tuple[Entry, ...]
) -> tuple[Entry, ...]:
    """The entries that are in force afterwards."""
    write = Write(
        thread=call.place.name,
        at=context.clock(),
        expect=UNSET,
        entries=entries,
        replace_entries=call.is_all_marks,
    )
    batch: Sequence[Write] = [write]
    while True:
        try:
            *_, receipt = await context.backend.commit(batch)
        except Conflict as conflict:
            if conflict.code not in _CHANGED:
                raise
        else:
            return receipt.entries
        guards = await _guards(context, call.place, call.checkpoint)
        batch = [*guards, replace(write, start=call.place.start(anew=True))]
