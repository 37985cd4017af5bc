"""The line from the first checkpoint to a tip, for a scrubber."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast._engine.context import Context
from holdfast._engine.threads.lineage import resolve_in
from holdfast._port import Ancestors, LineLength
from holdfast._values.records import Checkpoint
from holdfast._values.reference import HEAD
from holdfast.views.documents import iso
from holdfast.views.outcome import is_error
from holdfast.views.rows import parents_of
from holdfast.views.showing import PageSize, Position, Showing
from holdfast.views.usage import step_spent


class LineQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Checkpoints of a line by their position from the root, up to ``tip``."""

    thread: str
    tip: str | None = None
    first: Position = 0
    limit: PageSize = 500


async def line_document(
    context: Context, query: LineQuery, showing: Showing
) -> dict[str, Any]:
    """A stretch of the line, the oldest checkpoint first."""
    del showing  # an item has no text of the store
    tip, length = await tip_and_length(context, query.thread, query.tip)
    first = min(max(query.first, 0), length)
    limit = min(query.limit, length - first)
    page = await stretch(context, tip, length - first - limit, limit)
    parents = await parents_of(context, page)
    items = [_item(c, parents.get(c.parent or "")) for c in reversed(page)]
    end = first + limit
    return {
        "thread": query.thread,
        "tip": tip.id,
        "length": length,
        "first": first,
        "items": items,
        "next": end if end < length else None,
    }


async def tip_and_length(
    context: Context, thread: str, tip: str | None
) -> tuple[Checkpoint, int]:
    """The end of a line, and how many checkpoints it has."""
    record = await context.get_thread(thread)
    end = await resolve_in(context, record, tip or HEAD)
    if record.head is None or end.seq != record.head.seq:
        return end, await _length(context, end)
    [length] = await context.backend.scan(LineLength(thread))
    return end, length


async def _length(context: Context, tip: Checkpoint) -> int:
    """The length of the line of a checkpoint that is no head; see `LineLength`.

    A line has as many checkpoints as steps unless a prune removed some: then its end is
    found by halving.
    """
    low, high = 1, tip.step
    middle = high
    while low < high:
        if await stretch(context, tip, middle - 1, 1):
            low = middle
        else:
            high = middle - 1
        middle = (low + high + 1) // 2
    return low


async def stretch(
    context: Context, tip: Checkpoint, skip: int, limit: int
) -> list[Checkpoint]:
    """Some of a tip's ancestors, newest first."""
    if limit < 1:
        return []
    line = Ancestors(start=tip, skip=skip, limit=limit)
    return list(await context.backend.scan(line))


def _item(checkpoint: Checkpoint, parent: Checkpoint | None) -> dict[str, Any]:
    spent = step_spent(checkpoint, parent)
    return {
        "id": checkpoint.id,
        "step": checkpoint.step,
        "kind": checkpoint.kind,
        "at": iso(checkpoint.saved_at),
        "tokens": spent.tokens,
        "cost": spent.cost,
        "error": is_error(checkpoint, None),
    }
