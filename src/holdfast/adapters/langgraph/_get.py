"""Finds checkpoints by LangGraph's names, and reads them with their pending writes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Self, cast

import msgspec
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint as Put
from langgraph.checkpoint.base import CheckpointTuple

from holdfast.adapters.langgraph._draft import VERSIONS, unframed
from holdfast.adapters.langgraph._namespace import (
    Namespace,
    channel_of,
    id_in,
    namespace_in,
    namespace_of,
)
from holdfast.adapters.langgraph._task_writes import written
from holdfast.adapters.langgraph._types import Types
from holdfast.backends import (
    Checkpoint,
    CheckpointEntries,
    CheckpointKey,
    Entry,
    ThreadKey,
    ThreadRecord,
)
from holdfast.errors import Corrupt, FormatMismatch, NotFound
from holdfast.operations import Context
from holdfast.operations.graphs import FRAME, KIND, PARENT
from holdfast.operations.threads import Journals, is_visible, loaded, state_of
from holdfast.operations.values import HEAD, without_traceparent

# A LangGraph thread begins at step -1, a Holdfast thread at step 1.
_FIRST_STEP = 2
_NEWEST_FORMAT = 4


class GraphCheckpoint(msgspec.Struct, frozen=True):
    """A checkpoint with the namespace and the thread that it is read from."""

    namespace: Namespace
    thread: ThreadRecord
    checkpoint: Checkpoint

    @classmethod
    def of(cls, thread: ThreadRecord, checkpoint: Checkpoint) -> Self:
        """A checkpoint of a thread, in the namespace of the thread."""
        return cls(namespace_in(thread), thread, checkpoint)


async def find_thread(context: Context, namespace: Namespace) -> ThreadRecord | None:
    """The Holdfast thread of a namespace, also if it was deleted."""
    [record] = await context.backend.read([ThreadKey(namespace.name)])
    return checked(record, namespace) if record is not None else None


def checked(record: ThreadRecord, namespace: Namespace) -> ThreadRecord:
    """The same thread; `FormatMismatch` if it is not one of LangGraph's."""
    if record.deleted_at is None and record.kind != KIND:
        raise FormatMismatch(
            f"{record.id!r} is a thread of kind {record.kind!r} and not LangGraph's;"
            f" use another thread_id than {namespace.thread!r}"
        )
    return record


async def find_checkpoint(
    context: Context, record: ThreadRecord, id_: str | None
) -> Checkpoint | None:
    """The checkpoint of a thread with this id, not a prefix or a label."""
    if id_ is None:
        return None
    [found] = await context.backend.read([CheckpointKey(record.family, id_)])
    if found is None or not await is_visible(context, record, found):
        return None
    return found


async def get_tuple(
    context: Context, types: Types, config: RunnableConfig
) -> CheckpointTuple | None:
    """The checkpoint that a config names, or the newest of its thread."""
    namespace = namespace_of(config)
    id_ = id_in(config)
    if id_:
        found = await find(context, namespace, id_)
        return await tuple_of(context, types, found) if found else None
    try:
        newest = await loaded(context, namespace.name, HEAD)
    except NotFound:
        return None
    found = GraphCheckpoint(
        namespace, checked(newest.thread, namespace), newest.checkpoint
    )
    return _tuple(types, found, newest.values, await entries_on(context, found))


async def find(
    context: Context, namespace: Namespace, id_: str
) -> GraphCheckpoint | None:
    """A checkpoint of a namespace by its id; ``None`` if it is not there."""
    thread = await find_thread(context, namespace)
    if thread is None or thread.deleted_at is not None:
        return None
    if thread.head is not None and thread.head.id == id_:
        return GraphCheckpoint(namespace, thread, thread.head)
    checkpoint = await find_checkpoint(context, thread, id_)
    return GraphCheckpoint(namespace, thread, checkpoint) if checkpoint else None


async def tuple_of(
    context: Context, types: Types, found: GraphCheckpoint
) -> CheckpointTuple | None:
    """A checkpoint for LangGraph, ``None`` if it was removed in the meantime."""
    known = context.known(found.thread.id, found.checkpoint)
    try:
        state = await state_of(context, known)
    except Corrupt:
        if await find_checkpoint(context, found.thread, found.checkpoint.id):
            raise
        return None
    values = cast("dict[str, Any]", state)
    return _tuple(types, found, values, await entries_on(context, found))


def _tuple(
    types: Types,
    found: GraphCheckpoint,
    values: dict[str, Any],
    entries: Sequence[Entry] | None,
) -> CheckpointTuple:
    parent = values.pop(PARENT, stored_parent(found.checkpoint))
    frame = values.pop(FRAME, None) or _frame_of(found.checkpoint, values)
    checkpoint = {
        **unframed(types.revive(frame)),
        "id": found.checkpoint.id,
        "channel_values": {
            channel_of(name): types.revive(value) for name, value in values.items()
        },
    }
    return CheckpointTuple(
        config=found.namespace.config(found.checkpoint.id),
        # Newer versions of LangGraph add fields; all are returned unchanged.
        checkpoint=cast("Put", cast("object", checkpoint)),
        metadata=metadata_of(types, found.checkpoint),
        parent_config=found.namespace.config(parent) if parent else None,
        pending_writes=[write.revived(types) for write in written(entries or ())],
    )


def stored_parent(checkpoint: Checkpoint) -> str | None:
    """The id of the parent of a checkpoint, if it was not removed.

    It is also LangGraph's parent, unless the state has another one.
    """
    return checkpoint.parent if checkpoint.link is None else None


def _frame_of(checkpoint: Checkpoint, values: dict[str, Any]) -> dict[str, Any]:
    """The frame for a state that was saved without LangGraph."""
    versions = {channel_of(name): 1 for name in values}
    ts = checkpoint.time.isoformat()
    return {"v": _NEWEST_FORMAT, "ts": ts, VERSIONS: versions}


def metadata_of(types: Types, checkpoint: Checkpoint) -> Any:
    """The metadata of a checkpoint for LangGraph."""
    found = types.revive(checkpoint.metadata)
    if not found and not without_traceparent(checkpoint.encoded_metadata):
        step = checkpoint.step - _FIRST_STEP
        return {"source": "update", "step": step, "parents": {}}
    return found


async def entries_on(
    context: Context, found: GraphCheckpoint
) -> Sequence[Entry] | None:
    """The journal of a checkpoint, ``None`` if it was removed."""
    [entries] = await entries_on_each(context, found.thread, [found.checkpoint])
    return entries


async def entries_on_each(
    context: Context, thread: ThreadRecord, checkpoints: Sequence[Checkpoint]
) -> list[list[Entry] | None]:
    """The journals of checkpoints that a thread can see, ``None`` for a removed one."""
    threads = await Journals(context, thread).of_each(checkpoints)
    asked: dict[int, tuple[ThreadRecord, list[str]]] = {}
    for checkpoint, journal in zip(checkpoints, threads, strict=True):
        if journal is not None:
            asked.setdefault(journal.number, (journal, []))[1].append(checkpoint.id)
    found: defaultdict[str, list[Entry]] = defaultdict(list)
    for journal, ids in asked.values():
        query = CheckpointEntries(thread=journal, checkpoints=tuple(ids))
        for entry in await context.backend.scan(query):
            found[entry.checkpoint].append(entry)
    return [
        None if journal is None else found[checkpoint.id]
        for checkpoint, journal in zip(checkpoints, threads, strict=True)
    ]
