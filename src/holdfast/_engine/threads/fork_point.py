"""The newest checkpoint that two lines have in common, by descent or by merge."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, cast

from holdfast._engine.context import Context
from holdfast._engine.threads.lineage import is_ancestor
from holdfast._port import Ancestors, CheckpointKey
from holdfast._values.records import Checkpoint

CHUNK = 200
# The kind of a checkpoint that a merge has made, and where its metadata names what it
# was made of.
MERGE = "merge"


async def common_ancestor(
    context: Context, one: Checkpoint, other: Checkpoint
) -> Checkpoint | None:
    """The newest checkpoint that two lines share."""
    if one.family != other.family:
        return None
    while one.seq != other.seq:
        if one.step < other.step or (one.step == other.step and one.seq < other.seq):
            one, other = other, one
        lowest = min(other.step, one.step - 1)
        line = Ancestors(start=one, skip=1, limit=CHUNK, down_to_step=lowest)
        page = list(await context.backend.scan(line))
        if not page:
            return None
        # Checkpoints with higher steps than the other head cannot be shared.
        below = [c for c in page if c.step <= other.step]
        one = below[0] if below else page[-1]
    return one


async def merge_base(
    context: Context, ours: Checkpoint, theirs: Checkpoint
) -> Checkpoint | None:
    """The checkpoint that a merge compares both sides with.

    It is the newest checkpoint that both lines share, or that one of them has and the
    other has merged.
    """
    shared = await common_ancestor(context, ours, theirs)
    if shared is None:
        return None
    found = [shared]
    for head, other in ((ours, theirs), (theirs, ours)):
        async for merged in _merged_since(context, head, shared):
            if await is_ancestor(context, merged, of=other):
                found.append(merged)
                break
    return max(found, key=lambda checkpoint: checkpoint.seq)


async def _merged_since(
    context: Context, head: Checkpoint, shared: Checkpoint
) -> AsyncIterator[Checkpoint]:
    """The checkpoints that a line has merged since the fork, newest first."""
    async for checkpoint in line_down_to(context, head, shared):
        if checkpoint.kind != MERGE:
            continue
        parents = cast("dict[str, Any]", checkpoint.metadata.get(MERGE) or {})
        key = CheckpointKey(checkpoint.family, str(parents.get("theirs")))
        [merged] = await context.backend.read([key])
        if merged is not None:
            yield merged


async def line_down_to(
    context: Context, head: Checkpoint, end: Checkpoint
) -> AsyncIterator[Checkpoint]:
    """The checkpoints of a line from its head to one before ``end``, newest first."""
    start, skip = head, 0
    while True:
        line = Ancestors(start=start, skip=skip, limit=CHUNK, down_to_step=end.step)
        page = list(await context.backend.scan(line))
        for checkpoint in page:
            if checkpoint.seq == end.seq or checkpoint.step <= end.step:
                return
            yield checkpoint
        if len(page) < CHUNK:
            return
        start, skip = page[-1], 1
