"""Changes of a thread that save no state: fork, rewind, undo, redo, marks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from holdfast._engine.context import Context, missing_thread
from holdfast._engine.threads import subgraphs
from holdfast._engine.threads.lineage import Reference, resolve, resolve_in, unknown
from holdfast._engine.threads.references import head_moves
from holdfast._engine.threads.save import check_count, checked_tags
from holdfast._port import CheckpointKey, Details, Mark, Moves, Start, Turn, Write
from holdfast._values.records import (
    EFFECTS,
    UNSET,
    Checkpoint,
    Move,
    Origin,
    Page,
    ThreadRecord,
    Unset,
    checked_limit,
    checked_name,
    encode_metadata,
)
from holdfast._values.scope_name import refuse_scoped
from holdfast.errors import Conflict, NotFound


async def fork(
    context: Context,
    thread: str,
    new_thread: str,
    reference: Reference,
    effects: str | None = None,
) -> None:
    """Start a new thread at a checkpoint; nothing is copied.

    The subgraphs of a LangGraph thread are forked with it.
    ``effects`` is the policy of its tool calls, by default the one of this thread.
    """
    refuse_scoped(thread)
    source = await context.get_thread(thread)
    head = await resolve_in(context, source, reference)
    writes = await fork_writes(context, source, head, new_thread, effects)
    await context.backend.commit(writes)


async def fork_writes(
    context: Context,
    source: ThreadRecord,
    head: Checkpoint,
    new_thread: str,
    effects: str | None,
) -> list[Write]:
    """The writes that start a thread at a checkpoint of another one."""
    refuse_scoped(new_thread)
    start = Start(
        kind=source.kind,
        owner=source.owner,
        agent=source.agent,
        metadata=_with_policy(source.metadata, effects or source.effects),
        head=head,
        origin=Origin(source.id, head.id),
        anew=True,
    )
    write = Write(thread=new_thread, at=context.clock(), expect=None, start=start)
    return [write, *await subgraphs.forked(context, source, head, new_thread)]


def _with_policy(metadata: object, policy: str | None) -> bytes:
    """The metadata of a thread with its policy for effects."""
    encode_metadata(metadata)  # refuses what is no dict
    fields = dict(cast("dict[str, object]", metadata or {}))
    fields.pop(EFFECTS, None)
    return encode_metadata({**fields, EFFECTS: policy} if policy else fields)


async def rewind(
    context: Context, thread: str, reference: Reference, *, expect: str | None = None
) -> Checkpoint:
    """Move the head to an earlier checkpoint; what was ahead stays reachable.

    With ``expect``, `Conflict` unless the head has this id.
    """
    record = await context.get_thread(thread)
    target = await resolve_in(context, record, reference)
    if expect is None:
        return await turn(context, thread, "rewind", target, record.head)
    if record.head is None or record.head.id != expect:
        text = f"the head of thread {thread!r} is another by now; look at it again"
        raise Conflict(
            text, code="head_moved", thread=thread, expected=expect, found=record.head
        )
    context.cache.take(thread)
    move = Turn("rewind", target)
    write = Write(thread=thread, at=context.clock(), expect=record.head, turn=move)
    await context.backend.commit([write])
    return target


async def turn(
    context: Context,
    thread: str,
    kind: str,
    target: Checkpoint,
    head: Checkpoint | None = None,
) -> Checkpoint:
    """Move the head from wherever it is; ``head`` is where the caller saw it last."""
    context.cache.take(thread)
    while True:
        write = Write(
            thread=thread,
            at=context.clock(),
            expect=head or await context.get_head(thread),
            turn=Turn(kind, target),
        )
        try:
            await context.backend.commit([write])
        except Conflict as conflict:
            if conflict.code != "head_moved":
                raise
            head = None
        else:
            return target


async def undo(context: Context, thread: str) -> Checkpoint:
    """Undo the last save or rewind that has not been undone yet."""
    record, head = await _record_and_head(context, thread)
    undone = 0
    async for move in head_moves(context, thread):
        if move.kind == "undo":
            undone += 1
        elif move.kind == "redo" or undone:
            undone -= 1
        # A move that led elsewhere: the moves after it were deleted.
        elif move.target == head.id:
            if move.source is None:
                break
            target = await _logged(context, record, move.source)
            return await turn(context, thread, "undo", target, head)
    raise NotFound(f"thread {thread!r} has nothing to undo", thread=thread)


async def redo(context: Context, thread: str) -> Checkpoint:
    """Repeat what the last undo reverted, unless the head moved after it."""
    record, head = await _record_and_head(context, thread)
    redone = 0
    async for move in head_moves(context, thread):
        if move.kind == "redo":
            redone += 1
        elif move.kind != "undo":
            break
        elif redone:
            redone -= 1
        elif move.target == head.id and move.source is not None:
            target = await _logged(context, record, move.source)
            return await turn(context, thread, "redo", target, head)
    raise NotFound(f"thread {thread!r} has nothing to redo", thread=thread)


async def _logged(context: Context, record: ThreadRecord, id_: str) -> Checkpoint:
    """A checkpoint that the log of a thread names; another thread may have saved it."""
    [found] = await context.backend.read([CheckpointKey(record.family, id_)])
    if found is None:
        raise unknown(record.id, id_)
    return found


async def _record_and_head(
    context: Context, thread: str
) -> tuple[ThreadRecord, Checkpoint]:
    record = await context.get_thread(thread)
    if record.head is None:
        raise missing_thread(thread)
    return record, record.head


async def moves(
    context: Context, thread: str, before: int | None, limit: int | None
) -> Page[Move]:
    """A page of the thread's log of head moves."""
    checked_limit(limit)
    return await context.backend.scan(Moves(thread=thread, before=before, limit=limit))


async def mark(
    context: Context,
    thread: str,
    reference: Reference,
    *,
    label: str | Unset | None = UNSET,
    add: Sequence[str] = (),
    remove: Sequence[str] = (),
    expect: str | Unset | None = UNSET,
) -> Checkpoint:
    """Set or remove the label and tags of an existing checkpoint."""
    if not isinstance(label, Unset) and label is not None:
        checked_name(label, "label")
    added, removed = checked_tags(add), checked_tags(remove)
    checkpoint = await resolve(context, thread, reference)
    check_count({*checkpoint.tags, *added}.difference(removed))
    mark = Mark(checkpoint, label, added, removed, expect)
    write = Write(thread=thread, at=context.clock(), expect=UNSET, marks=(mark,))
    await context.backend.commit([write])
    [marked] = await context.backend.read(
        [CheckpointKey(checkpoint.family, checkpoint.id)]
    )
    if marked is None:
        raise unknown(thread, checkpoint.id)
    return marked


async def describe(
    context: Context,
    thread: str,
    *,
    owner: str | Unset | None,
    metadata: dict[str, object] | Unset | None,
) -> None:
    """Set the owner or the metadata of a thread."""
    refuse_scoped(thread)
    record = await context.get_thread(thread)
    if not isinstance(owner, Unset) and owner is not None:
        checked_name(owner, "owner")
    encoded: bytes | Unset = UNSET
    if not isinstance(metadata, Unset):
        encoded = _with_policy(metadata, record.effects)
    write = Write(
        thread=thread,
        at=context.clock(),
        expect=UNSET,
        details=Details(owner, encoded),
    )
    await context.backend.commit([write])
