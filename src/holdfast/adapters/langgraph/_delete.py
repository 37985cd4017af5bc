"""Deletes threads, the checkpoints of runs, or all but the newest; copies threads."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, cast

from holdfast.adapters.langgraph._delta_channels import check, needed
from holdfast.adapters.langgraph._get import GraphCheckpoint, find_thread
from holdfast.adapters.langgraph._list import namespaces
from holdfast.adapters.langgraph._namespace import Namespace, namespace_in
from holdfast.backends import (
    Checkpoint,
    Prune,
    Saves,
    ThreadRecord,
    Threads,
    Turn,
    Write,
)
from holdfast.errors import Unstorable
from holdfast.operations import Context
from holdfast.operations.graphs import KIND
from holdfast.operations.threads import duplicate, inherited, plan_removal, removal

# A function that selects the checkpoints of a thread to remove, unless they are needed.
Condemns = Callable[[ThreadRecord, Checkpoint], bool]


async def delete_thread(context: Context, thread: str) -> None:
    """Delete a thread with its subgraphs; later writes of its runs are refused."""
    namespace = Namespace(str(thread))
    below = Threads(kind=KIND, prefix=namespace.below, every=True)
    while True:
        root = await find_thread(context, namespace)
        found = [root] if root else []
        # A subgraph may begin during the scan, until its thread is deleted.
        found += await context.backend.scan(below)
        names = [record.id for record in found if record.deleted_at is None]
        if not names:
            return
        await removal.delete_threads(context, names)


async def delete_for_runs(context: Context, runs: Collection[str]) -> None:
    """Remove the checkpoints of runs, except those that delta channels still need."""

    def is_of_runs(_thread: ThreadRecord, checkpoint: Checkpoint) -> bool:
        return checkpoint.metadata.get("run_id") in runs

    if runs:
        for thread in await context.backend.scan(Threads(kind=KIND)):
            await _remove(context, thread.id, is_of_runs)


async def prune(context: Context, threads: Sequence[str], strategy: str) -> None:
    """Remove all checkpoints of threads, or all but the newest of each namespace."""
    if strategy not in {"keep_latest", "delete"}:
        text = f"must be 'keep_latest' or 'delete', not {strategy!r}"
        raise Unstorable("strategy", text)
    for thread in threads:
        if strategy == "delete":
            await delete_thread(context, thread)
        else:
            await _keep_latest(context, str(thread))


async def _keep_latest(context: Context, thread: str) -> None:
    gone = await _remove(context, Namespace(thread).name, _is_behind)
    for record in await namespaces(context, thread):
        namespace = namespace_in(record)
        if not namespace.ns:
            continue
        # A colon marks the namespace of one call of a subgraph; it is removed with the
        # checkpoint that made the call. Others are persistent and keep their newest.
        if ":" in namespace.ns and _called_from(record) in gone:
            await removal.delete_threads(context, [record.id])
        else:
            await _remove(context, record.id, _is_behind)


def _is_behind(thread: ThreadRecord, checkpoint: Checkpoint) -> bool:
    return thread.head is not None and checkpoint.seq != thread.head.seq


def _called_from(thread: ThreadRecord) -> object:
    assert thread.head is not None
    parents = thread.head.metadata.get("parents")
    return cast("dict[str, Any]", parents).get("") if parents else None


async def copy_thread(context: Context, source: str, target: str) -> None:
    """Copy a thread and its namespaces; source and copy share no storage."""
    records = await namespaces(context, str(source))
    for record in records:
        assert record.head is not None
        await check(context, GraphCheckpoint.of(record, record.head))
    for record in reversed(records):
        namespace = Namespace(str(target), namespace_in(record).ns)
        await duplicate(context, record, namespace.name, namespace.start(anew=True))


async def _remove(context: Context, name: str, condemns: Condemns) -> set[str]:
    """Remove checkpoints of a thread; returns their ids."""

    async def attempt() -> set[str]:
        thread = await context.find_thread(name)
        if thread is None or thread.head is None or thread.kind != KIND:
            return set()
        family = Saves(family=thread.family, oldest_first=True)
        every = list(await context.backend.scan(family))
        doomed = await _doomed(context, thread, every, condemns)
        if doomed:
            await _carry_out(context, thread, every, doomed)
            context.cache.take(name)
        return {checkpoint.id for checkpoint in doomed}

    return await removal.until_current(attempt)


async def _doomed(
    context: Context,
    thread: ThreadRecord,
    every: Sequence[Checkpoint],
    condemns: Condemns,
) -> list[Checkpoint]:
    """The condemned checkpoints without labelled, tagged and needed ones."""
    others = await context.backend.scan(Threads(family=thread.family, every=True))
    kept: set[str] = set()
    for other in others:
        if other.number != thread.number and other.deleted_at is None:
            kept |= {other.head.id} if other.head else set()
            kept |= {other.forked_from.checkpoint} if other.forked_from else set()
    doomed = {
        checkpoint.id: checkpoint
        for checkpoint in every
        if checkpoint.thread_number == thread.number
        and checkpoint.id not in kept
        and not (checkpoint.label or checkpoint.tags)
        and condemns(thread, checkpoint)
    }
    for checkpoint in every:
        if checkpoint.id not in doomed and checkpoint.parent in doomed:
            for id_ in await needed(context, GraphCheckpoint.of(thread, checkpoint)):
                doomed.pop(id_, None)
    return list(doomed.values())


async def _carry_out(
    context: Context,
    thread: ThreadRecord,
    every: Sequence[Checkpoint],
    doomed: Sequence[Checkpoint],
) -> None:
    """Remove checkpoints; the head moves to the newest one that is left."""
    gone = {checkpoint.id for checkpoint in doomed}
    own = [c for c in every if c.thread_number == thread.number and c.id not in gone]
    newest = own[-1] if own else None
    if newest is None and thread.forked_from is not None:
        newest = await inherited(context, thread)
    if newest is None:
        await removal.drop(context, [thread])
        return
    assert thread.head is not None
    at, first = context.clock(), tuple[Write, ...]()
    if thread.head.id in gone:
        turn = Turn("rewind", newest)
        first = (Write(thread=thread.id, at=at, expect=thread.head, turn=turn),)
    plan = plan_removal(thread.family, every, doomed)
    await removal.carry_out(context, Prune(at=at, first=first, families=(plan,)))
