"""A family's whole log in a few hundred stretches."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Annotated, Any

import msgspec

from holdfast._engine.context import Context
from holdfast._engine.threads import family
from holdfast._port import Saves
from holdfast._values.records import Checkpoint
from holdfast.views.lanes import Lanes
from holdfast.views.outcome import is_error
from holdfast.views.rows import heads_of
from holdfast.views.showing import Showing

CHUNK = 5_000


class MinimapQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The family of a thread, in so many stretches at most."""

    thread: str
    buckets: Annotated[int, msgspec.Meta(ge=1, le=2_000)] = 500


class _Row(msgspec.Struct, frozen=True, gc=False):
    """What is drawn of a checkpoint."""

    id: str
    error: bool
    fork: bool
    head: bool
    lanes: int


async def minimap_document(
    context: Context, query: MinimapQuery, showing: Showing
) -> dict[str, Any]:
    """The stretches, newest first, each with the ids of its first and last row."""
    del showing  # a stretch has no text of the store
    record = await context.get_thread(query.thread)
    heads = heads_of(await family.family(context, query.thread)).keys()
    rows = await _rows(context, record.family, heads)
    size = -(-len(rows) // query.buckets) or 1
    buckets = [
        _bucket(rows[first : first + size]) for first in range(0, len(rows), size)
    ]
    return {"thread": query.thread, "total": len(rows), "buckets": buckets}


def _bucket(rows: Sequence[_Row]) -> dict[str, Any]:
    return {
        "first": rows[0].id,
        "last": rows[-1].id,
        "count": len(rows),
        "errors": sum(row.error for row in rows),
        "forks": sum(row.fork for row in rows),
        "lanes": max(row.lanes for row in rows),
        "heads": sum(row.head for row in rows),
    }


async def _rows(
    context: Context, family_number: int, heads: Collection[str]
) -> list[_Row]:
    """Every row; only what is drawn stays in memory."""
    lanes = Lanes()
    found: list[_Row] = []
    before: int | None = None
    while True:
        saves = Saves(family=family_number, before=before, limit=CHUNK)
        page = await context.backend.scan(saves)
        found += [_row(checkpoint, lanes, heads) for checkpoint in page]
        if len(page) < CHUNK:
            return found
        before = page[-1].seq


def _row(checkpoint: Checkpoint, lanes: Lanes, heads: Collection[str]) -> _Row:
    placed = lanes.place(checkpoint)
    return _Row(
        checkpoint.id,
        is_error(checkpoint, None),
        bool(placed.ending),
        checkpoint.id in heads,
        sum(placed.before),
    )
