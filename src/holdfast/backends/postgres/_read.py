"""Running the reads of the port on one session."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from holdfast._port import (
    Candidates,
    Key,
    Kinds,
    Outdated,
    OutdatedCount,
    Pieces,
    Query,
    SavedIn,
    Scattered,
    SegmentsKey,
    StateKey,
    Stored,
    Surplus,
    Threads,
    Totals,
    Weights,
)
from holdfast._values.records import Change, Page, Run, Segment
from holdfast._values.runs import state_runs
from holdfast.backends._sql.reads import Reads, Statement, to_changes
from holdfast.backends._sql.rows import COLUMNS, Row, to_segments
from holdfast.backends.postgres import _search
from holdfast.backends.postgres._rows import CODEC, in_order, piece_values
from holdfast.backends.postgres._statements import Statements
from holdfast.errors import Corrupt, Unsupported

T = TypeVar("T")

READS = Reads(CODEC, list)
SEES_WHAT_IS_NEW = frozenset({"read committed", "read uncommitted"})
# The number of columns of the statement ``state`` for the thread and its head.
THREAD_COLUMNS = len(COLUMNS["thread_full"])


async def run(db: Statements, statement: Statement[T]) -> T:
    """The rows of a statement as records."""
    return statement.convert(await db.rows(statement.name, **statement.values))


async def read_all(db: Statements, keys: Sequence[Key[Any]]) -> list[Any]:
    """The records of keys in the same order, ``None`` for a missing one."""
    wanted = [key for key in keys if isinstance(key, SegmentsKey)]
    pieces = iter(await _pieces(db, wanted) if wanted else ())
    return [
        next(pieces) if isinstance(key, SegmentsKey) else await read_one(db, key)
        for key in keys
    ]


async def _pieces(db: Statements, keys: list[SegmentsKey]) -> list[Pieces | None]:
    """The segments of all keys, read by one statement."""
    wanted = [(n, (key.family, run)) for n, key in enumerate(keys) for run in key.runs]
    found = await db.rows("pieces", **piece_values([run for _, run in wanted]))
    rows: dict[int, list[Row]] = defaultdict(list)
    for place, *row in found:
        rows[wanted[place][0]].append(tuple(row))
    return [_complete_pieces(key, rows[n]) for n, key in enumerate(keys)]


def _complete_pieces(key: SegmentsKey, rows: list[Row]) -> Pieces | None:
    try:
        segments = to_segments(rows, key.family)
        return Pieces(tuple(_complete(key.family, key.runs, segments)))
    except Corrupt:
        return None


async def read_one(db: Statements, key: Key[Any]) -> Any:
    """The record of a key, ``None`` if there is none."""
    if isinstance(key, StateKey):
        return await _state(db, key)
    return await run(db, READS.key(key))


async def _state(db: Statements, key: StateKey) -> Stored | None:
    found = await db.row("state", name=key.name, known=key.known)
    if found is None:
        return None
    thread = CODEC.thread(found[:THREAD_COLUMNS])
    assert thread.head is not None
    if thread.head.seq == key.known:
        return Stored(thread, None)
    columns = (column or () for column in found[THREAD_COLUMNS:])
    rows = zip(*columns, strict=True)
    segments = to_segments(rows, thread.family)
    runs = state_runs(thread.head.runs)
    return Stored(thread, tuple(_complete(thread.family, runs, segments)))


async def read_segments(
    db: Statements, family: int, runs: Sequence[Run]
) -> list[Segment]:
    """The segments of the runs, in order and complete."""
    found = await db.rows(
        "segments",
        family=family,
        firsts=[run.first for run in runs],
        lasts=[run.last for run in runs],
    )
    return _complete(family, runs, to_segments(found, family))


def _complete(
    family: int, runs: Sequence[Run], segments: list[Segment]
) -> list[Segment]:
    found = in_order(runs, segments)
    if found is None:
        raise Corrupt(f"family {family}", "segments are missing")
    return found


def reads_all(query: Query[Any]) -> bool:
    """True if an answer may need all rows of a table, and so any amount of time."""
    if isinstance(query, Threads):
        return query.family is None and (bool(query.metadata) or query.limit is None)
    whole = Kinds | Outdated | OutdatedCount | SavedIn | Scattered | Totals | Weights
    return isinstance(query, whole)


async def read_page(db: Statements, query: Query[Any]) -> Page[Any]:
    """One page of a listing; its cursor is the sequence number to go on from."""
    if isinstance(query, Candidates):
        return await _candidates(db, query)
    if isinstance(query, Outdated):
        last, _ = await _horizon(db, in_one_view=False)
        return await _search.read_outdated(db, query, last)
    if isinstance(query, OutdatedCount):
        return await _search.count_outdated(db, query)
    if isinstance(query, Scattered):
        return await _search.read_scattered(db, query)
    if isinstance(query, Surplus):
        end = await run(db, READS.families_end(query))
        return await run(db, READS.surplus(query, end))
    return await run(db, READS.page(query))


async def _candidates(db: Statements, query: Candidates) -> Page[Any]:
    if await _search.is_readable(db):
        found = await _search.read_candidates(db, query)
        if found is not None:
            return found
    return await run(db, READS.candidates(query))


class FeedPage(msgspec.Struct, frozen=True):
    """A page of the feed; with ``is_pending`` a running transaction may add to it."""

    page: Page[Change]
    is_pending: bool


async def read_changes(
    db: Statements, after: int, limit: int, *, in_one_view: bool = False
) -> FeedPage:
    """The feed behind a sequence number, as far as it is settled.

    ``in_one_view`` says that both statements may run in one transaction.
    """
    # Two statements: rows must be read after the horizon is known.
    horizon, is_pending = await _horizon(db, in_one_view=in_one_view)
    # Read only as many numbers as a page can need, since the feed may be long; read
    # more if many rows were removed.
    span = limit
    while True:
        last = min(horizon, after + span)
        rows = await db.rows("changes", after=after, last=last, limit=limit)
        if len(rows) == limit or last == horizon or horizon < after:
            break
        span *= 4
    return FeedPage(to_changes(rows, after), is_pending=is_pending)


class _Horizon(NamedTuple):
    """The last settled change, and whether a running transaction may add others."""

    last: int
    is_pending: bool


async def _horizon(db: Statements, *, in_one_view: bool) -> _Horizon:
    found = await db.row("horizon")
    assert found is not None
    (last, pending), is_standby, isolation = found
    if is_standby:
        raise Unsupported("a standby cannot tell changes; open the primary")
    if in_one_view and isolation not in SEES_WHAT_IS_NEW:
        raise Unsupported(
            f"a {isolation} transaction may miss changes; read them outside of it"
        )
    return _Horizon(last, pending is not None)
