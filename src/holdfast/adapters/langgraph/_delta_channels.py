"""Channels whose values LangGraph computes from the writes of many checkpoints.

A *delta channel* is not stored in every checkpoint. Its value is the last stored one
plus the writes of tasks on all checkpoints since. These checkpoints must not be removed
while a later one needs them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from langchain_core.runnables import RunnableConfig

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
from holdfast.backends import Ancestors, Checkpoint
from holdfast.errors import NotFound
from holdfast.operations import Context
from holdfast.operations.graphs import PARENT
from holdfast.operations.threads import read_values, read_values_of
from holdfast.operations.transcripts import fields_of, parts_of
from holdfast.operations.values import has_value

COUNTERS = "counters_since_delta_snapshot"
# The ancestors to read at once: if LangGraph did not count them, and at most.
PAGE, MOST = 50, 1000
_NONE: Final[frozenset[str]] = frozenset()


class _Source(NamedTuple):
    """A checkpoint that delta channels are computed from.

    ``written`` are the channels that need its writes. Of these it stores the values of
    ``stored``.
    """

    checkpoint: Checkpoint
    written: frozenset[str]
    stored: frozenset[str]


class _Sources(NamedTuple):
    """The checkpoints that channels are computed from, newest first.

    ``lost`` are the channels that need a removed checkpoint.
    """

    found: list[_Source]
    lost: frozenset[str]


async def history(
    context: Context, types: Types, config: RunnableConfig, channels: Sequence[str]
) -> dict[str, Any]:
    """The last stored value of each channel before a checkpoint, and later writes."""
    target = await _target(context, config)
    if target is None:
        return {channel: {"writes": []} for channel in channels}
    sources = await _sources(context, target, channels)
    writes: dict[str, list[Any]] = {channel: [] for channel in channels}
    for write in await _writes(context, target, sources):
        writes[write.channel].append(write.revived(types))
    found: dict[str, Any] = {c: {"writes": listed} for c, listed in writes.items()}
    for source in sources.found:
        if source.stored:
            for channel, value in (await _stored(context, source)).items():
                found[channel]["seed"] = types.revive(value)
    return found


async def check(context: Context, target: GraphCheckpoint) -> None:
    """Raise `NotFound` if the delta channels of a checkpoint cannot be computed."""
    channels = counted(target.checkpoint)
    await _writes(context, target, await _sources(context, target, channels))


async def needed(context: Context, found: GraphCheckpoint) -> set[str]:
    """The ids of the checkpoints from which delta channels are computed."""
    sources = await _sources(context, found, counted(found.checkpoint))
    return {source.checkpoint.id for source in sources.found}


async def _sources(
    context: Context, target: GraphCheckpoint, channels: Iterable[str]
) -> _Sources:
    """The ancestors of a checkpoint, by LangGraph's parents."""
    current = target.checkpoint
    climb = _Climb(current, channels)
    steps = _steps(current, climb.waiting)
    while climb.waiting:
        parent = await _parent_of(context, current)
        if parent is None:
            is_root = current.link is None or has_value(current, PARENT)
            return _Sources(climb.found, _NONE if is_root else climb.waiting)
        line: Sequence[Checkpoint] = ()
        if parent == current.parent:
            query = Ancestors(start=current, skip=1, limit=steps)
            line = await context.backend.scan(query)
        if not line or line[0].id != parent:
            other = await find_checkpoint(context, target.thread, parent)
            if other is None:
                return _Sources(climb.found, climb.waiting)
            line = (other,)
        current = climb.along(line)
    return _Sources(climb.found, _NONE)


class _Climb:
    """The ancestors so far, and the channels without a stored value among them."""

    def __init__(self, start: Checkpoint, channels: Iterable[str]) -> None:
        self.found: list[_Source] = []
        self.waiting = frozenset(channels)
        self._ids = {start.id}

    def along(self, line: Sequence[Checkpoint]) -> Checkpoint:
        """Add ancestors up to one with another parent in LangGraph; return the last."""
        current = line[0]
        for checkpoint in line:
            current = checkpoint
            if checkpoint.id in self._ids:
                # A caller named a descendant as the parent: the whole circle is read.
                self.waiting = _NONE
                break
            self._ids.add(checkpoint.id)
            waiting, stored = self.waiting, _NONE
            for channel in waiting:
                if has_value(checkpoint, channel_name(channel)):
                    stored |= {channel}
            self.found.append(_Source(checkpoint, waiting, stored))
            if stored:
                self.waiting = waiting - stored
            is_last = checkpoint.link is not None or has_value(checkpoint, PARENT)
            if is_last or not self.waiting:
                break
        return current


async def _writes(
    context: Context, target: GraphCheckpoint, sources: _Sources
) -> list[StoredWrite]:
    """The writes of tasks to channels, in the order in which LangGraph applies them."""
    _refuse_gap(target, sources.lost)
    checkpoints = [source.checkpoint for source in sources.found]
    journals = await entries_on_each(context, target.thread, checkpoints)
    found: list[StoredWrite] = []
    oldest_first = zip(reversed(sources.found), reversed(journals), strict=True)
    for source, entries in oldest_first:
        if entries is None:
            _refuse_gap(target, source.written)
        elif entries:
            found += [w for w in written(entries) if w.channel in source.written]
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
    """The values of channels that a checkpoint has stored.

    Their bytes stay in the cache, because about the next fifty turns read them.
    """
    names = {channel_name(channel): channel for channel in source.stored}
    # The name of a thread has no NUL, so this is not the cache's place for a thread.
    place = "\0".join((source.checkpoint.thread, *sorted(names)))
    known = context.known(place, source.checkpoint)
    found = await read_values(context, known, [*names])
    context.cache.give(place, known)
    return {names[name]: value for name, value in found.items()}


async def _parent_of(context: Context, checkpoint: Checkpoint) -> str | None:
    """The id of LangGraph's parent of a checkpoint, if it was not removed."""
    if not has_value(checkpoint, PARENT):
        return stored_parent(checkpoint)
    found = await read_values_of(context, checkpoint, PARENT)
    return cast("str | None", found[PARENT])


def _steps(checkpoint: Checkpoint, channels: Iterable[str]) -> int:
    """The number of ancestors that channels are computed from, by LangGraph's count."""
    counters = fields_of(checkpoint.metadata.get(COUNTERS))
    counts = [parts_of(counters.get(channel)) for channel in channels]
    steps = [count[-1] for count in counts if count]
    return min(max((n for n in steps if isinstance(n, int)), default=0) or PAGE, MOST)


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
