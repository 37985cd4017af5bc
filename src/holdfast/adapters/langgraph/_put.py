"""Saves checkpoints and the writes of tasks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    CheckpointMetadata,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.base import Checkpoint as Put
from msgspec.structs import replace

from holdfast.adapters.langgraph._draft import PutDraft
from holdfast.adapters.langgraph._get import find_checkpoint, find_thread
from holdfast.adapters.langgraph._namespace import (
    Namespace,
    given,
    id_in,
    made_at,
    namespace_of,
)
from holdfast.adapters.langgraph._task_writes import TaskWrites, task_writes
from holdfast.adapters.langgraph._types import Types
from holdfast.backends import (
    UNSET,
    Checkpoint,
    Entry,
    Receipt,
    ThreadKey,
    ThreadRecord,
    Turn,
    Write,
)
from holdfast.errors import Conflict
from holdfast.operations import Context
from holdfast.operations.threads import name_successor, save
from holdfast.operations.values import checked_id, encode_metadata

# Conflicts that another writer may cause between read and save.
_CHANGED = frozenset({"head_moved", "thread_missing", "thread_deleted"})


class PutRequest(msgspec.Struct, frozen=True):
    """A checkpoint to save.

    ``parent`` is the id of LangGraph's parent; with ``follows`` it must be the newest
    checkpoint of the thread.
    """

    namespace: Namespace
    draft: PutDraft
    how: save.Options
    parent: str | None
    follows: bool

    @property
    def id(self) -> str:
        """The id that LangGraph gave it."""
        assert self.how.id is not None
        return self.how.id


def _follows(config: RunnableConfig, namespace: Namespace, parent: str | None) -> bool:
    """True if a put continues the checkpoint that its run found as the newest.

    False if the caller asked for a certain checkpoint. The configs of runs are
    complete, and their metadata name the checkpoint that was asked for. Subgraphs are
    not checked: they start at an earlier checkpoint when their run does, and two
    concurrent runs are detected in the outer graph.
    """
    if namespace.ns or "recursion_limit" not in config:
        return False
    by_namespace: Mapping[str, str] = given(config).get("checkpoint_map") or {}
    asked = config.get("metadata", {}).get("checkpoint_id")
    return parent is None or parent not in (asked, by_namespace.get(namespace.ns))


async def put(
    context: Context,
    types: Types,
    config: RunnableConfig,
    checkpoint: Put,
    metadata: CheckpointMetadata,
    new_versions: ChannelVersions,
    unsaved: Collection[str] = (),
) -> RunnableConfig:
    """Save a checkpoint as the newest of its thread and return its config.

    ``unsaved`` are checkpoints before it that had effects and are never saved.
    """
    namespace, parent = namespace_of(config), id_in(config)
    kept = types.tabled(dict(get_checkpoint_metadata(config, metadata)), "metadata")
    how = save.Options(id=checked_id(checkpoint["id"]), metadata=encode_metadata(kept))
    draft = PutDraft(types, checkpoint, new_versions, parent)
    follows = _follows(config, namespace, parent)
    asked = PutRequest(namespace, draft, how, parent, follows)
    before = [id_ for id_ in unsaved if id_ != asked.id]
    if before:
        # Record this before the save: if the save fails, the effects stay left behind.
        await name_successor(context, namespace.name, before, asked.id)
    await save_checkpoint(context, asked)
    return namespace.config(asked.id)


async def save_checkpoint(context: Context, asked: PutRequest) -> Checkpoint:
    """Save a checkpoint as the newest of its thread."""
    how = _on_known(context, asked) or await _on_found(context, asked)
    while True:
        try:
            return await save.save(context, asked.namespace.name, asked.draft, how)
        except Conflict as conflict:
            if conflict.code not in _CHANGED:
                raise
        how = await _on_found(context, asked)


def _on_known(context: Context, asked: PutRequest) -> save.Options | None:
    """Options to continue this process's last save, if it is the parent; no read."""
    known = context.cache.take(asked.namespace.name)
    if known is None:
        return None
    context.cache.give(asked.namespace.name, known)
    is_next = known.head.id == asked.parent
    return replace(asked.how, expect=known.head) if is_next else None


async def _on_found(context: Context, asked: PutRequest) -> save.Options:
    """Options to continue the head; `Conflict` if that hides another run's work."""
    record = await find_thread(context, asked.namespace)
    if record is None or record.head is None:
        return await _as_first(context, asked, record)
    parent = await find_checkpoint(context, record, asked.parent)
    if parent is None or parent.seq != record.head.seq:
        if asked.follows and not await find_checkpoint(context, record, asked.id):
            raise _moved(asked, record.head)
        if parent is not None:
            turned = _turned(context, record, parent)
            commit = _together(context, turned)
            return replace(asked.how, expect=parent, commit=commit)
    return replace(asked.how, expect=record.head)


async def _as_first(
    context: Context, asked: PutRequest, record: ThreadRecord | None
) -> save.Options:
    """Options to begin a thread, also one that was deleted before."""
    namespace = asked.namespace
    if record is not None and record.deleted_at is not None and asked.parent:
        raise deleted(namespace)
    how = replace(asked.how, expect=None, start=namespace.start(anew=True))
    if not namespace.ns:
        return how
    guards = await _guards(context, namespace, asked.id)
    return replace(how, commit=_together(context, *guards))


def _together(context: Context, *first: Write) -> Callable[[Write], Awaitable[Receipt]]:
    """A function that commits a write after others, in one transaction."""

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


async def _guards(
    context: Context, namespace: Namespace, checkpoint: str
) -> tuple[Write, ...]:
    """The writes that fail if the thread of a new namespace is deleted meanwhile."""
    keys = [ThreadKey(namespace.root), ThreadKey(namespace.name)]
    root, own = await context.backend.read(keys)
    for record in (root, own):
        if record is not None and is_late(record, checkpoint):
            raise deleted(namespace)
    if root is None or root.head is None or root.deleted_at is not None:
        return ()
    return (Write(thread=namespace.root, at=context.clock(), expect=root.head),)


def is_late(record: ThreadRecord, checkpoint: str) -> bool:
    """True if a checkpoint was made before its thread was deleted, or may have been."""
    if record.deleted_at is None:
        return False
    made = made_at(checkpoint)
    return made is None or made <= record.deleted_at


def deleted(namespace: Namespace) -> Conflict:
    """The error of a write after its thread was deleted."""
    return Conflict(
        f"thread {namespace.thread!r} was deleted while a run was at work on it, and"
        " what the run saves is refused; begin a new run",
        code="thread_deleted",
        thread=namespace.thread,
    )


def _moved(asked: PutRequest, head: Checkpoint) -> Conflict:
    begun = "an empty thread" if asked.parent is None else repr(asked.parent)
    return Conflict(
        f"another run has saved to thread {asked.namespace.thread!r}: this one goes on"
        f" from {begun}, and the newest is {head.id!r}; run it again, or pass a"
        " checkpoint_id to branch off",
        code="head_moved",
        thread=asked.namespace.thread,
        expected=asked.parent,
        found=head,
    )


# --- the writes of tasks --------------------------------------------------------------


async def put_writes(
    context: Context,
    types: Types,
    config: RunnableConfig,
    writes: Sequence[tuple[str, Any]],
    task: tuple[str, str],
) -> None:
    """Save the writes of a task; a task is its id and its path."""
    await save_writes(context, task_writes(types, config, writes, task))


async def save_writes(context: Context, call: TaskWrites) -> None:
    """Save the writes of a task on a checkpoint, which may be saved later.

    Stored writes are kept, except special ones, which are replaced.
    """
    while call.writes:
        entries = call.entries(context.clock())
        first, *_ = await _record(context, call, entries)
        if first.data == entries[0].data:
            return
        call = call.beyond(first)


async def _record(
    context: Context, call: TaskWrites, entries: tuple[Entry, ...]
) -> tuple[Entry, ...]:
    """Store the entries that are missing, and return all."""
    write = Write(
        thread=call.namespace.name,
        at=context.clock(),
        expect=UNSET,
        entries=entries,
        replace_entries=call.are_special,
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
        guards = await _guards(context, call.namespace, call.checkpoint)
        batch = [*guards, replace(write, start=call.namespace.start(anew=True))]
