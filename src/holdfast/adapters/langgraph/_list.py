"""Listing checkpoints, newest first: what was saved last comes first, whatever the
clocks of the writers said. Nothing is held open between one and the next."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Mapping
from heapq import heappop, heappush
from typing import Any

import msgspec
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple

from holdfast._engine.context import Context
from holdfast._engine.threads.lineage import inherited
from holdfast._port import Ancestors, Saves, Threads
from holdfast._values.records import Checkpoint, ThreadRecord
from holdfast.adapters.langgraph._get import (
    Found,
    find_checkpoint,
    find_thread,
    metadata_of,
    tuple_of,
)
from holdfast.adapters.langgraph._items import item_at
from holdfast.adapters.langgraph._names import (
    KIND,
    Place,
    given,
    id_in,
    place_in,
    place_of,
)
from holdfast.adapters.langgraph._types import Types

PAGE = 50


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """Which checkpoints to list; their metadata have to be as ``filter`` says."""

    config: RunnableConfig | None = None
    filter: Mapping[str, Any] | None = None
    before: RunnableConfig | None = None
    limit: int | None = None


async def tuples(
    context: Context, types: Types, asked: Asked
) -> AsyncIterator[CheckpointTuple]:
    """The checkpoints that were asked for, with their values and writes."""
    left = asked.limit
    if left is not None and left <= 0:
        return
    async for found in checkpoints(context, asked):
        if not matches(metadata_of(types, found.checkpoint), asked.filter):
            continue
        made = await tuple_of(context, types, found)
        if made is None:
            continue
        yield made
        left = None if left is None else left - 1
        if left == 0:
            return


async def checkpoints(context: Context, asked: Asked) -> AsyncIterator[Found]:
    """The checkpoints that were asked for, but for the filter."""
    id_ = id_in(asked.config)
    threads = await _threads(context, asked)
    bound, older_than = await _bound(context, asked, threads)
    if id_:
        for thread in threads:
            only = await find_checkpoint(context, thread, id_)
            if only and (bound is None or only.seq < bound):
                yield Found(place_in(thread.metadata), thread, only)
        return
    before = id_in(asked.before)
    async for found in merged(context, threads, bound):
        if older_than is not None and found.checkpoint.id >= older_than:
            continue
        if before is None or not _is_on(found.checkpoint, before):
            yield found


def _is_on(checkpoint: Checkpoint, around: str) -> bool:
    """Whether a subgraph saved a checkpoint while the graph around it was at another.

    A run that saves only when it exits saves those of its subgraphs first.
    """
    parents = checkpoint.metadata.get("parents")
    return isinstance(parents, Mapping) and around in parents.values()


async def _threads(context: Context, asked: Asked) -> list[ThreadRecord]:
    """The threads to look into, last used first."""
    if asked.config is None:
        return list(await context.backend.scan(Threads(kind=KIND)))
    place = place_of(asked.config)
    if given(asked.config).get("checkpoint_ns") is None:
        return await namespaces(context, place.thread)
    thread = await find_thread(context, place)
    return [thread] if thread and thread.deleted_at is None else []


async def namespaces(context: Context, thread: str) -> list[ThreadRecord]:
    """A thread and the namespaces of its subgraphs, last used first."""
    place = Place(thread)
    root = await find_thread(context, place)
    below = await context.backend.scan(Threads(kind=KIND, prefix=place.below))
    found = [root, *below] if root and root.deleted_at is None else list(below)
    return sorted(found, key=lambda record: -record.changed)


async def _bound(
    context: Context, asked: Asked, threads: list[ThreadRecord]
) -> tuple[int | None, str | None]:
    """The number that checkpoints must come before, or else the id.

    A run that is repeated asks a subgraph for what came before a checkpoint of the
    graph around it: so it is looked for in all namespaces.
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
) -> AsyncIterator[Found]:
    """The checkpoints of threads, which come in the order in which they were used."""
    waiting = deque(threads)
    lines: list[tuple[int, int, Found, AsyncIterator[Checkpoint]]] = []

    async def push(thread: ThreadRecord, line: AsyncIterator[Checkpoint]) -> None:
        checkpoint = await anext(line, None)
        if checkpoint is not None:
            found = Found(place_in(thread.metadata), thread, checkpoint)
            heappush(lines, (-checkpoint.seq, thread.number, found, line))

    while waiting or lines:
        # None of a thread's checkpoints is newer than its last use.
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
    """All checkpoints of a thread: what it saved, then what it began with."""
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


def matches(metadata: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """Whether metadata have all items, by their keys or the paths to them."""
    return all(item_at(metadata, key) == told for key, told in (wanted or {}).items())
