"""Channels whose values LangGraph makes anew from the writes of many checkpoints.

A *delta channel* is not in every checkpoint. Its value begins with the last one that is
stored and grows by what tasks wrote since: on all the checkpoints in between, which
must not be removed while a later one needs them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, cast

from langchain_core.runnables import RunnableConfig

from holdfast._engine.cache import OpenedCheckpoint
from holdfast._engine.context import Context
from holdfast._engine.threads.drafts import read_values
from holdfast._port import Ancestors
from holdfast._values.records import Checkpoint
from holdfast.adapters.langgraph._draft import PARENT
from holdfast.adapters.langgraph._get import (
    Found,
    entries_on,
    find,
    find_checkpoint,
    find_thread,
    parent_of,
)
from holdfast.adapters.langgraph._names import FRAME, channel_name, id_in, place_of
from holdfast.adapters.langgraph._task_writes import Written, written
from holdfast.adapters.langgraph._types import Types
from holdfast.errors import NotFound

COUNTERS = "counters_since_delta_snapshot"
PAGE = 50


async def history(
    context: Context, types: Types, config: RunnableConfig, channels: Sequence[str]
) -> dict[str, Any]:
    """What each channel begins with before a checkpoint, and what was written since."""
    target = await _target(context, config)
    if target is None:
        return {channel: {"writes": []} for channel in channels}
    collected, seeds = await _collect(context, target, channels)
    return {
        channel: {"writes": [write.revived(types) for write in reversed(writes)]}
        | ({"seed": types.revive(seeds[channel])} if channel in seeds else {})
        for channel, writes in collected.items()
    }


async def check(context: Context, target: Found) -> None:
    """Refuse a checkpoint whose delta channels cannot be made again."""
    await _collect(context, target, counted(target.checkpoint))


async def _collect(
    context: Context, target: Found, channels: Iterable[str]
) -> tuple[dict[str, list[Written]], dict[str, Any]]:
    """What was written to each channel, newest first, and what it began with."""
    collected: dict[str, list[Written]] = {channel: [] for channel in channels}
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


async def _target(context: Context, config: RunnableConfig) -> Found | None:
    place = place_of(config)
    id_ = id_in(config)
    if id_:
        return await find(context, place, id_)
    thread = await find_thread(context, place)
    if thread is None or thread.head is None:
        return None
    return Found(place, thread, thread.head)


async def _stored(
    context: Context, checkpoint: Checkpoint, channels: set[str]
) -> dict[str, Any]:
    """Those of some channels that a checkpoint has a value of."""
    known = OpenedCheckpoint.of(checkpoint)
    names = {channel_name(channel): channel for channel in channels}
    found = await read_values(context, known, list(names))
    return {names[name]: value for name, value in found.items()}


async def ancestors(context: Context, found: Found) -> AsyncIterator[Found | None]:
    """What a checkpoint goes on from, as LangGraph sees it, newest first.

    Ends with ``None`` where something was removed.
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
        yield Found(found.place, found.thread, current)
    if current.link is not None and PARENT not in frame:
        yield None


async def frame_of(context: Context, checkpoint: Checkpoint) -> dict[str, Any]:
    """What stands in a checkpoint beside its channels."""
    known = OpenedCheckpoint.of(checkpoint)
    found = await read_values(context, known, [FRAME])
    return cast("dict[str, Any]", found.get(FRAME, {}))


def counted(checkpoint: Checkpoint) -> set[str]:
    """The delta channels that a checkpoint has no value of."""
    counters = checkpoint.metadata.get(COUNTERS)
    return set(cast("Mapping[str, object]", counters or {}))


async def needed(context: Context, found: Found) -> set[str]:
    """The ids of the checkpoints that the delta channels of one are made of."""
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


def _refuse_gap(target: Found, waiting: set[str]) -> None:
    """Rather no value than one that silently lacks what was written once."""
    lost = waiting & counted(target.checkpoint)
    if lost:
        raise NotFound(
            f"channel {min(lost)!r} of thread {target.place.thread!r} cannot be made"
            f" again: some of what was written to it before {target.checkpoint.id!r}"
            " was removed; go on from another checkpoint",
            thread=target.place.thread,
            reference=target.checkpoint.id,
        )
