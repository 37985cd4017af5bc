"""Lists checkpoints in the order of their saves, newest first.

The order does not depend on the clocks of the writers. No transaction is open between
two items.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Mapping
from heapq import heappop, heappush
from typing import Any

import msgspec
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple

from holdfast.adapters.langgraph._filter import has_items
from holdfast.adapters.langgraph._get import (
    GraphCheckpoint,
    find_checkpoint,
    find_thread,
    metadata_of,
    tuple_of,
)
from holdfast.adapters.langgraph._namespace import (
    Namespace,
    given,
    id_in,
    namespace_of,
)
from holdfast.adapters.langgraph._types import Types
from holdfast.backends import Ancestors, Checkpoint, Saves, ThreadRecord, Threads
from holdfast.operations import Context
from holdfast.operations.graphs import KIND
from holdfast.operations.threads import inherited

PAGE = 50


class TupleQuery(msgspec.Struct, frozen=True):
    """A listing of checkpoints; their metadata must have the items of ``filter``."""

    config: RunnableConfig | None = None
    filter: Mapping[str, Any] | None = None
    before: RunnableConfig | None = None
    limit: int | None = None


async def tuples(
    context: Context, types: Types, asked: TupleQuery
) -> AsyncIterator[CheckpointTuple]:
    """The checkpoints of a query, with their values and writes."""
    left = asked.limit
    if left is not None and left <= 0:
        return
    async for found in checkpoints(context, asked):
        if not has_items(metadata_of(types, found.checkpoint), asked.filter):
            continue
        made = await tuple_of(context, types, found)
        if made is None:
            continue
        yield made
        left = None if left is None else left - 1
        if left == 0:
            return


async def checkpoints(
    context: Context, asked: TupleQuery
) -> AsyncIterator[GraphCheckpoint]:
    """The checkpoints of a query; the filter is not applied yet."""
    id_ = id_in(asked.config)
    threads = await _threads(context, asked)
    bound, older_than = await _bound(context, asked, threads)
    if id_:
        for thread in threads:
            only = await find_checkpoint(context, thread, id_)
            if only and (bound is None or only.seq < bound):
                yield GraphCheckpoint.of(thread, only)
        return
    before = id_in(asked.before)
    async for found in merged(context, threads, bound):
        if older_than is not None and found.checkpoint.id >= older_than:
            continue
        if before is None or not _is_on(found.checkpoint, before):
            yield found


def _is_on(checkpoint: Checkpoint, around: str) -> bool:
    """True if a subgraph saved a checkpoint while its outer graph was at another.

    A run that saves only at its exit saves the checkpoints of its subgraphs first, so
    their numbers are lower than that of the outer graph's checkpoint.
    """
    parents = checkpoint.metadata.get("parents")
    return isinstance(parents, Mapping) and around in parents.values()


async def _threads(context: Context, asked: TupleQuery) -> list[ThreadRecord]:
    """The threads to list, the last used first."""
    if asked.config is None:
        return list(await context.backend.scan(Threads(kind=KIND)))
    namespace = namespace_of(asked.config)
    if given(asked.config).get("checkpoint_ns") is None:
        return await namespaces(context, namespace.thread)
    thread = await find_thread(context, namespace)
    return [thread] if thread and thread.deleted_at is None else []


async def namespaces(context: Context, thread: str) -> list[ThreadRecord]:
    """The threads of all namespaces of a LangGraph thread, the last used first."""
    namespace = Namespace(thread)
    root = await find_thread(context, namespace)
    below = await context.backend.scan(Threads(kind=KIND, prefix=namespace.below))
    found = [root, *below] if root and root.deleted_at is None else list(below)
    return sorted(found, key=lambda record: -record.changed)


async def _bound(
    context: Context, asked: TupleQuery, threads: list[ThreadRecord]
) -> tuple[int | None, str | None]:
    """The ``before`` of a query as a number, or as an id if it cannot be found.

    A run that is repeated lists a subgraph's checkpoints before a checkpoint of the
    outer graph: so ``before`` is searched in all namespaces.
    """
    id_ = id_in(asked.before)
    if id_ is None:
        return None, None
    wanted = given(asked.config).get("thread_id")
    thread = given(asked.before).get("thread_id", wanted)
    if thread is not None:
        threads = await namespaces(context, str(thread))
    for record in threads:
        found = await find_checkpoint(context, record, id_)
        if found is not None:
            return found.seq, None
    return None, id_


async def merged(
    context: Context, threads: list[ThreadRecord], bound: int | None = None
) -> AsyncIterator[GraphCheckpoint]:
    """The checkpoints of threads by number; the threads are sorted by last use."""
    waiting = deque(threads)
    lines: list[tuple[int, int, GraphCheckpoint, AsyncIterator[Checkpoint]]] = []

    async def push(thread: ThreadRecord, line: AsyncIterator[Checkpoint]) -> None:
        checkpoint = await anext(line, None)
        if checkpoint is not None:
            found = GraphCheckpoint.of(thread, checkpoint)
            heappush(lines, (-checkpoint.seq, thread.number, found, line))

    while waiting or lines:
        # A thread has no checkpoint newer than its last use, so it is opened only then.
        while waiting and not (lines and -lines[0][0] > waiting[0].changed):
            thread = waiting.popleft()
            await push(thread, line_of(context, thread, bound))
        if lines:
            _, _, found, line = heappop(lines)
            yield found
            await push(found.thread, line)


async def line_of(
    context: Context, thread: ThreadRecord, bound: int | None = None
) -> AsyncIterator[Checkpoint]:
    """All checkpoints of a thread: its own, then the ones it inherited as a fork."""
    before = bound
    while True:
        query = Saves(family=thread.family, thread=thread.id, before=before, limit=PAGE)
        page = await context.backend.scan(query)
        for checkpoint in page:
            yield checkpoint
        if len(page) < PAGE:
            break
        before = page[-1].seq
    if thread.forked_from is None:
        return
    above = await inherited(context, thread)
    while above is not None:
        page = await context.backend.scan(Ancestors(start=above, limit=PAGE))
        for checkpoint in page:
            if bound is None or checkpoint.seq < bound:
                yield checkpoint
        above = await _next(context, page[-1]) if len(page) == PAGE else None


async def _next(context: Context, checkpoint: Checkpoint) -> Checkpoint | None:
    page = await context.backend.scan(Ancestors(start=checkpoint, skip=1, limit=1))
    return page[0] if page else None
