"""A family's whole log in a few hundred stretches.

Of a large family only some rows are read: the picture must not take longer than the
page of the log beside it. Heads, forks and lanes are counted in any case; errors only
among the rows that are read.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from typing import Annotated, Any

import msgspec

from holdfast._engine.context import Context
from holdfast._engine.threads import family
from holdfast._port import CheckpointKey, FamilySizes, Saves
from holdfast._values.records import Checkpoint, ThreadRecord
from holdfast.views.outcome import is_error
from holdfast.views.rows import heads_of
from holdfast.views.showing import Showing

# A family with more rows is sampled, in so many places.
MOST_ROWS = 3_000
PLACES, ROWS_AT_PLACE = 200, 5


class MinimapQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The family of a thread, in so many stretches at most."""

    thread: str
    buckets: Annotated[int, msgspec.Meta(ge=1, le=2_000)] = 500


class _Row(msgspec.Struct, frozen=True, gc=False):
    """One checkpoint in the minimap."""

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
    members = list(await family.family(context, query.thread))
    sizes = await context.backend.scan(FamilySizes(families=(record.family,)))
    total = sum(size.checkpoints for size in sizes)
    if total > MOST_ROWS:
        buckets = await _sampled(context, record, members, total, query.buckets)
    else:
        rows = await _rows(context, record.family, heads_of(members).keys())
        buckets = _buckets(rows, query.buckets)
    return {
        "thread": query.thread,
        "total": total,
        "sampled": total > MOST_ROWS,
        "buckets": buckets,
    }


# --- every row ------------------------------------------------------------------------


async def _rows(
    context: Context, family_number: int, heads: Collection[str]
) -> list[_Row]:
    saves = await context.backend.scan(Saves(family=family_number, limit=MOST_ROWS))
    awaited: Counter[str] = Counter()
    return [_row(checkpoint, awaited, heads) for checkpoint in saves]


def _row(checkpoint: Checkpoint, awaited: Counter[str], heads: Collection[str]) -> _Row:
    """A row; ``awaited`` counts the lanes that lead to each checkpoint below."""
    lanes = awaited.pop(checkpoint.id, 0)
    shown = awaited.total() + max(lanes, 1)
    if checkpoint.parent is not None:
        awaited[checkpoint.parent] += 1
    is_head = checkpoint.id in heads
    error = is_error(checkpoint, None)
    return _Row(checkpoint.id, error, lanes > 1, is_head, shown)


def _buckets(rows: Sequence[_Row], most: int) -> list[dict[str, Any]]:
    size = -(-len(rows) // most) or 1
    return [_bucket(rows[first : first + size]) for first in range(0, len(rows), size)]


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


# --- some rows ------------------------------------------------------------------------


class _Forks(msgspec.Struct, frozen=True):
    """The numbers of the heads, and of the checkpoints that forks begin at, sorted."""

    heads: list[int]
    origins: list[int]

    def lanes(self, seq: int) -> int:
        """The number of threads forked before a number and used after it."""
        used_later = len(self.heads) - bisect_left(self.heads, seq)
        forked_later = len(self.origins) - bisect_left(self.origins, seq)
        return max(used_later - forked_later, 1)


async def _sampled(
    context: Context,
    record: ThreadRecord,
    members: Sequence[ThreadRecord],
    total: int,
    most: int,
) -> list[dict[str, Any]]:
    """Stretches of equal length; rows are taken from the thread's own line."""
    forks = await _forks(context, members)
    newest = forks.heads[-1]
    places = min(PLACES, most)
    ends = [newest - newest * place // places for place in range(places + 1)]
    buckets: list[dict[str, Any]] = []
    for place, (end, start) in enumerate(pairwise(ends)):
        rows = await _near(context, record, end)
        if not rows:
            break
        count = total * (place + 1) // places - total * place // places
        buckets.append(_stretch(rows, count, forks, range(start + 1, end + 1)))
    if buckets:  # rows before the first of the line
        buckets[-1]["count"] += total - sum(bucket["count"] for bucket in buckets)
    return buckets


def _stretch(
    rows: Sequence[Checkpoint], count: int, forks: _Forks, numbers: range
) -> dict[str, Any]:
    return {
        "first": rows[0].id,
        "last": rows[-1].id,
        "count": count,
        "errors": sum(is_error(row, None) for row in rows),
        "forks": _within(forks.origins, numbers),
        "lanes": forks.lanes(numbers.stop),
        "heads": _within(forks.heads, numbers),
    }


def _within(numbers: Sequence[int], where: range) -> int:
    return bisect_right(numbers, where.stop - 1) - bisect_left(numbers, where.start)


async def _forks(context: Context, members: Iterable[ThreadRecord]) -> _Forks:
    heads = sorted(member.head.seq for member in members if member.head)
    keys = [
        CheckpointKey(member.family, member.forked_from.checkpoint)
        for member in members
        if member.forked_from is not None
    ]
    found = await context.backend.read(keys) if keys else []
    origins = sorted(origin.seq for origin in found if origin is not None)
    return _Forks(heads, origins)


async def _near(
    context: Context, record: ThreadRecord, seq: int
) -> Sequence[Checkpoint]:
    """The checkpoints of a thread up to a number, or of those it was forked from."""
    while True:
        saves = Saves(
            family=record.family, thread=record.id, before=seq + 1, limit=ROWS_AT_PLACE
        )
        found = await context.backend.scan(saves)
        if found or record.forked_from is None:
            return found
        record = await context.get_thread(record.forked_from.thread)
