"""Channels whose values LangGraph computes from the writes of many checkpoints.

A *delta channel* is not stored in every checkpoint. Its value is the last stored one
plus what tasks wrote on all checkpoints since. These checkpoints must not be removed
while a later one needs them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec
from langchain_core.runnables import RunnableConfig

from holdfast._engine.context import Context
from holdfast._engine.threads.drafts import read_values_of
from holdfast._messages.langgraph_form import PARENT
from holdfast._port import Ancestors
from holdfast._values.manifest import value_names
from holdfast._values.records import Checkpoint
from holdfast.adapters.langgraph._get import (
    GraphCheckpoint,
    entries_on_each,
    find,
    find_checkpoint,
    find_thread,
    stored_parent,
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
# So many ancestors are read at once: if LangGraph did not count them, and at most.
PAGE, MOST = 50, 1000


class _Source(msgspec.Struct, frozen=True):
    """A checkpoint that delta channels are computed from.

    ``written`` are the channels whose writes on it count, and of these ``stored`` the
    channels whose value it has.
    """

    checkpoint: Checkpoint
    written: frozenset[str]
    stored: frozenset[str]


async def history(
    context: Context, types: Types, config: RunnableConfig, channels: Sequence[str]
) -> dict[str, Any]:
    """The last stored value of each channel before a checkpoint, and later writes."""
    target = await _target(context, config)
    if target is None:
        return {channel: {"writes": []} for channel in channels}
    sources = await _sources(context, target, channels)
    found: dict[str, Any] = {channel: {"writes": []} for channel in channels}
    for write in await _writes(context, target, sources):
        found[write.channel]["writes"].append(write.revived(types))
    for source in sources:
        for channel, value in (await _stored(context, source)).items():
            found[channel]["seed"] = types.revive(value)
    return found


async def check(context: Context, target: GraphCheckpoint) -> None:
    """Raise `NotFound` if the delta channels of a checkpoint cannot be computed."""
    channels = counted(target.checkpoint)
    await _writes(context, target, await _sources(context, target, channels))


async def needed(context: Context, found: GraphCheckpoint) -> set[str]:
    """The ids of the checkpoints from which delta channels are computed."""
    sources = _walk(context, found, counted(found.checkpoint))
    return {source.checkpoint.id async for source in sources if source}


async def _sources(
    context: Context, target: GraphCheckpoint, channels: Iterable[str]
) -> list[_Source]:
    """The checkpoints from which channels are computed, newest first."""
    found: list[_Source] = []
    waiting = frozenset(channels)
    async for source in _walk(context, target, waiting):
        if source is None:
            _refuse_gap(target, waiting)
        else:
            found.append(source)
            waiting = source.written - source.stored
    return found


async def _walk(
    context: Context, target: GraphCheckpoint, channels: Iterable[str]
) -> AsyncIterator[_Source | None]:
    """The ancestors of a checkpoint until all channels have a stored value.

    Ends with ``None`` where a checkpoint was removed.
    """
    waiting = frozenset(channels)
    if not waiting:
        return
    async for above in ancestors(context, target, _steps(target.checkpoint, waiting)):
        if above is None:
            yield None
            return
        names = value_names(above)
        stored = frozenset(c for c in waiting if channel_name(c) in names)
        yield _Source(above, waiting, stored)
        waiting -= stored
        if not waiting:
            return


async def _writes(
    context: Context, target: GraphCheckpoint, sources: Sequence[_Source]
) -> list[StoredWrite]:
    """What tasks wrote to channels, in the order in which LangGraph applies it."""
    checkpoints = [source.checkpoint for source in sources]
    journals = await entries_on_each(context, target.thread, checkpoints)
    found: list[StoredWrite] = []
    for source, entries in zip(reversed(sources), reversed(journals), strict=True):
        if entries is None:
            _refuse_gap(target, source.written)
        found += [w for w in written(entries or ()) if w.channel in source.written]
    return found


async def _target(context: Context, config: RunnableConfig) -> GraphCheckpoint | None:
    namespace = namespace_of(config)
    id_ = id_in(config)
    if id_:
        return await find(context, namespace, id_)
    thread = await find_thread(context, namespace)
    if thread is None or thread.head is None:
        return None
    return GraphCheckpoint(namespace, thread, thread.head)


async def _stored(context: Context, source: _Source) -> dict[str, Any]:
    """The values of channels that a checkpoint has stored."""
    if not source.stored:
        return {}
    names = {channel_name(channel): channel for channel in source.stored}
    found = await read_values_of(context, source.checkpoint, *names)
    return {names[name]: value for name, value in found.items()}


async def ancestors(
    context: Context, found: GraphCheckpoint, steps: int
) -> AsyncIterator[Checkpoint | None]:
    """The ancestors of a checkpoint by LangGraph's parents, newest first.

    Ends with ``None`` where a checkpoint was removed. Reads ``steps`` of them at once.
    """
    current = found.checkpoint
    line: deque[Checkpoint] = deque()
    while (parent := await _parent_of(context, current)) is not None:
        if not line and current.parent == parent:
            query = Ancestors(start=current, skip=1, limit=steps)
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
        yield current
    if current.link is not None and PARENT not in value_names(current):
        yield None


async def _parent_of(context: Context, checkpoint: Checkpoint) -> str | None:
    if PARENT not in value_names(checkpoint):
        return stored_parent(checkpoint)
    found = await read_values_of(context, checkpoint, PARENT)
    return cast("str | None", found[PARENT])


def _steps(checkpoint: Checkpoint, channels: Iterable[str]) -> int:
    """How many ancestors the channels are computed from, as LangGraph counted it."""
    counters = cast("Mapping[str, Any]", checkpoint.metadata.get(COUNTERS) or {})
    counts = [counters[channel] for channel in channels if channel in counters]
    steps = [pair[-1] for pair in counts if isinstance(pair, Sequence) and pair]
    return min(max((n for n in steps if type(n) is int), default=PAGE), MOST)


def counted(checkpoint: Checkpoint) -> set[str]:
    """The delta channels whose values a checkpoint does not store."""
    counters = checkpoint.metadata.get(COUNTERS)
    return set(cast("Mapping[str, object]", counters or {}))


def _refuse_gap(target: GraphCheckpoint, waiting: frozenset[str]) -> None:
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
