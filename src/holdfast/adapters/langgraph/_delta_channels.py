"""Channels whose values LangGraph computes from the writes of many checkpoints.

A *delta channel* is not stored in every checkpoint. Its value is the last stored one
plus what tasks wrote on all checkpoints since. These checkpoints must not be removed
while a later one needs them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, cast

from langchain_core.runnables import RunnableConfig

from holdfast._engine.cache import OpenedCheckpoint
from holdfast._engine.context import Context
from holdfast._engine.threads.drafts import read_values
from holdfast._messages.langgraph_form import FRAME
from holdfast._port import Ancestors
from holdfast._values.records import Checkpoint
from holdfast.adapters.langgraph._draft import PARENT
from holdfast.adapters.langgraph._get import (
    GraphCheckpoint,
    entries_on,
    find,
    find_checkpoint,
    find_thread,
    parent_of,
)
from holdfast.adapters.langgraph._namespace import (
    channel_name,
    id_in,
    namespace_of,
)
from holdfast.adapters.langgraph._task_writes import StoredWrite, written
from holdfast.adapters.langgraph._types import Types
from holdfast.errors import NotFound

COUNTERS = "counters_since_delta_snapshot"
PAGE = 50


async def history(
    context: Context, types: Types, config: RunnableConfig, channels: Sequence[str]
) -> dict[str, Any]:
    """The last stored value of each channel before a checkpoint, and later writes."""
    target = await _target(context, config)
    if target is None:
        return {channel: {"writes": []} for channel in channels}
    collected, seeds = await _collect(context, target, channels)
    return {
        channel: {"writes": [write.revived(types) for write in reversed(writes)]}
        | ({"seed": types.revive(seeds[channel])} if channel in seeds else {})
        for channel, writes in collected.items()
    }


async def check(context: Context, target: GraphCheckpoint) -> None:
    """Raise `NotFound` if the delta channels of a checkpoint cannot be computed."""
    await _collect(context, target, counted(target.checkpoint))


async def _collect(
    context: Context, target: GraphCheckpoint, channels: Iterable[str]
) -> tuple[dict[str, list[StoredWrite]], dict[str, Any]]:
    """The writes to each channel, newest first, and its last stored value."""
    collected: dict[str, list[StoredWrite]] = {channel: [] for channel in channels}
    seeds: dict[str, Any] = {}
    async for found in ancestors(context, target):
        waiting = collected.keys() - seeds.keys()
        if not waiting:
            break
        entries = await entries_on(context, found) if found else None
        if entries is None:
            _refuse_gap(target, waiting)
        for write in reversed(written(entries or ())):
            if write.channel in waiting:
                collected[write.channel].append(write)
        if found is not None:
            seeds |= await _stored(context, found.checkpoint, waiting)
    return collected, seeds


async def _target(context: Context, config: RunnableConfig) -> GraphCheckpoint | None:
    namespace = namespace_of(config)
    id_ = id_in(config)
    if id_:
        return await find(context, namespace, id_)
    thread = await find_thread(context, namespace)
    if thread is None or thread.head is None:
        return None
    return GraphCheckpoint(namespace, thread, thread.head)


async def _stored(
    context: Context, checkpoint: Checkpoint, channels: set[str]
) -> dict[str, Any]:
    """The values of channels that a checkpoint has stored."""
    known = OpenedCheckpoint.of(checkpoint)
    names = {channel_name(channel): channel for channel in channels}
    found = await read_values(context, known, list(names))
    return {names[name]: value for name, value in found.items()}


async def ancestors(
    context: Context, found: GraphCheckpoint
) -> AsyncIterator[GraphCheckpoint | None]:
    """The ancestors of a checkpoint by LangGraph's parents, newest first.

    Ends with ``None`` where a checkpoint was removed.
    """
    current = found.checkpoint
    line: deque[Checkpoint] = deque()
    while True:
        frame = await frame_of(context, current)
        parent = parent_of(current, frame)
        if parent is None:
            break
        if not line and current.parent == parent:
            query = Ancestors(start=current, skip=1, limit=PAGE)
            line += await context.backend.scan(query)
        if line and line[0].id == parent:
            current = line.popleft()
        else:
            line.clear()
            other = await find_checkpoint(context, found.thread, parent)
            if other is None:
                yield None
                return
            current = other
        yield GraphCheckpoint(found.namespace, found.thread, current)
    if current.link is not None and PARENT not in frame:
        yield None


async def frame_of(context: Context, checkpoint: Checkpoint) -> dict[str, Any]:
    """The frame of a checkpoint: what it holds beside its channels."""
    known = OpenedCheckpoint.of(checkpoint)
    found = await read_values(context, known, [FRAME])
    return cast("dict[str, Any]", found.get(FRAME, {}))


def counted(checkpoint: Checkpoint) -> set[str]:
    """The delta channels whose values a checkpoint does not store."""
    counters = checkpoint.metadata.get(COUNTERS)
    return set(cast("Mapping[str, object]", counters or {}))


async def needed(context: Context, found: GraphCheckpoint) -> set[str]:
    """The ids of the checkpoints from which delta channels are computed."""
    missing = counted(found.checkpoint)
    ids: set[str] = set()
    if not missing:
        return ids
    async for above in ancestors(context, found):
        if above is None:
            break
        ids.add(above.checkpoint.id)
        missing -= (await _stored(context, above.checkpoint, missing)).keys()
        if not missing:
            break
    return ids


def _refuse_gap(target: GraphCheckpoint, waiting: set[str]) -> None:
    """Raise `NotFound` instead of returning a value that lacks writes."""
    thread, lost = target.namespace.thread, waiting & counted(target.checkpoint)
    if lost:
        raise NotFound(
            f"channel {min(lost)!r} of thread {thread!r} cannot be made again: some of"
            f" what was written to it before {target.checkpoint.id!r} was removed; go"
            " on from another checkpoint",
            thread=thread,
            reference=target.checkpoint.id,
        )
