"""Several branches as a table: score, steps, tokens, and what differs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast._engine.context import Context
from holdfast._engine.threads.explore import BranchResult, result_of, shared_by
from holdfast._engine.threads.fork_point import line_down_to
from holdfast._engine.threads.load import load_any
from holdfast._values.records import Checkpoint
from holdfast.diff import summary
from holdfast.views.comparison import column_head
from holdfast.views.differences import counts_by_value, difference
from holdfast.views.usage import step_spent


async def branches_document(
    context: Context, checkpoints: Sequence[tuple[str, Checkpoint]]
) -> dict[str, Any]:
    """Checkpoints, each with its thread, compared with the newest that all share.

    If they share none they are compared with the first. Each has the recorded result of
    its exploration, and the highest score comes first.
    """
    heads = [checkpoint for _, checkpoint in checkpoints]
    shared = await shared_by(context, heads)
    base = await load_any(context, shared or heads[0])
    rows = [
        await _row(context, thread, checkpoint, shared, base)
        for thread, checkpoint in checkpoints
    ]
    rows.sort(key=lambda row: (row["score"] is None, -(row["score"] or 0)))
    return {"base": column_head(shared) if shared else None, "branches": rows}


async def _row(
    context: Context,
    thread: str,
    checkpoint: Checkpoint,
    shared: Checkpoint | None,
    base: object,
) -> dict[str, Any]:
    found = difference(base, await load_any(context, checkpoint), bookkeeping=False)
    result = await result_of(context, thread)
    # What was recorded is about the checkpoint that the branch had then.
    recorded = result if result and result.head == checkpoint.id else None
    return {
        **column_head(checkpoint),
        "title": thread,
        "status": recorded.status if recorded else None,
        "score": recorded.score if recorded else None,
        "steps": checkpoint.step - (shared.step if shared else 0),
        "tokens": await _tokens(context, checkpoint, shared, recorded),
        "differs": summary(found),
        "counts": {name: dict(n) for name, n in counts_by_value(found).items()},
    }


async def _tokens(
    context: Context,
    checkpoint: Checkpoint,
    shared: Checkpoint | None,
    recorded: BranchResult | None,
) -> int | None:
    """The tokens that a branch reported, else the sum over its checkpoints."""
    if recorded is not None and recorded.tokens:
        return recorded.tokens
    if shared is None:
        return None
    line = [one async for one in line_down_to(context, checkpoint, shared)]
    parents = [*line[1:], shared]
    spent = [
        step_spent(one, parent).tokens
        for one, parent in zip(line, parents, strict=False)
    ]
    return sum(filter(None, spent)) or None
