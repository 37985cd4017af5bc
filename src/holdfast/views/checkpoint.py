"""The document of one checkpoint: all but its state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast._engine.context import Context
from holdfast._engine.threads import family
from holdfast._engine.threads.listing import get
from holdfast._port import CheckpointKey, Saves
from holdfast._values.records import Checkpoint, ThreadRecord
from holdfast.views.commands import checkpoint_commands
from holdfast.views.growth import growth_of, value_sizes
from holdfast.views.rows import heads_of, row_maker
from holdfast.views.showing import Showing

# After a rewind, the next checkpoint may come after others; so many are looked at.
MOST_NEWER = 20
MOST_FORKS = 20


class CheckpointQuery(msgspec.Struct, frozen=True, kw_only=True):
    """One checkpoint, by its id or a unique beginning of it."""

    id: str


async def checkpoint_document(
    context: Context, query: CheckpointQuery, showing: Showing
) -> dict[str, Any]:
    """A checkpoint with its lineage, its sizes and the commands that use it."""
    checkpoint = await get(context, query.id)
    record = await context.find_thread(checkpoint.thread)
    members = list(await family.family(context, record.id)) if record else []
    maker = await row_maker(context, [checkpoint], heads_of(members), showing)
    parent = maker.parents.get(checkpoint.parent or "")
    growth = growth_of(checkpoint, parent)
    children, complete = await _children(context, checkpoint, members)
    return {
        **maker.row(checkpoint),
        "digest": checkpoint.digest,
        "children": children,
        "children_complete": complete,
        "metadata": showing.value(checkpoint.metadata),
        "usage": showing.value(checkpoint.metadata.get("usage")),
        "traceparent": checkpoint.traceparent,
        "lineage": await _lineage(context, checkpoint),
        "changed": showing.line(", ".join(growth.changed)),
        "values": {
            showing.line(n): size for n, size in value_sizes(checkpoint).items()
        },
        "commands": checkpoint_commands(checkpoint),
    }


async def _children(
    context: Context, checkpoint: Checkpoint, members: Sequence[ThreadRecord]
) -> tuple[list[dict[str, Any]], bool]:
    """The checkpoints that were saved right after it: in its thread, and in forks.

    And whether these are all: no listing finds a child that came long after a rewind.
    """
    forks = [
        thread.id
        for thread in members
        if thread.forked_from and thread.forked_from.checkpoint == checkpoint.id
    ]
    found: list[dict[str, Any]] = []
    complete = len(forks) <= MOST_FORKS
    for thread in [checkpoint.thread, *forks[:MOST_FORKS]]:
        newer = await context.backend.scan(_newer(checkpoint, thread))
        complete = complete and len(newer) < MOST_NEWER
        found += [
            {"id": other.id, "step": other.step, "thread": other.thread}
            for other in newer
            if other.parent == checkpoint.id
        ]
    return found, complete


def _newer(checkpoint: Checkpoint, thread: str) -> Saves:
    return Saves(
        family=checkpoint.family,
        thread=thread,
        after=checkpoint.seq,
        oldest_first=True,
        limit=MOST_NEWER,
    )


async def _lineage(context: Context, checkpoint: Checkpoint) -> list[dict[str, Any]]:
    """The origins of a fork, from the nearest to the first."""
    found: list[dict[str, Any]] = []
    name = checkpoint.thread
    while len(found) < MOST_FORKS:
        record = await context.find_thread(name)
        if record is None or record.forked_from is None:
            break
        name, id_ = record.forked_from
        [origin] = await context.backend.read([CheckpointKey(record.family, id_)])
        step = origin.step if origin else None
        found.append({"thread": name, "checkpoint": id_, "step": step})
    return found
