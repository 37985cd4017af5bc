"""Running the reads of the port on one session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from holdfast._port import (
    Candidates,
    IndexKey,
    Key,
    Outdated,
    Query,
    Scattered,
    StateKey,
    Stored,
    Surplus,
)
from holdfast._values.records import Change, Page, Run, Segment
from holdfast.backends._sql.reads import Reads, Statement, to_changes
from holdfast.backends._sql.rows import COLUMNS, to_segments
from holdfast.backends.postgres import _search
from holdfast.backends.postgres._arrays import int8s
from holdfast.backends.postgres._rows import CODEC, in_order
from holdfast.backends.postgres._statements import Statements
from holdfast.errors import Corrupt, Unsupported

T = TypeVar("T")

READS = Reads(CODEC, int8s)
SEES_WHAT_IS_NEW = frozenset({"read committed", "read uncommitted"})
# Of the statement ``state``, those of the thread and its head.
THREAD_COLUMNS = len(COLUMNS["thread_full"])


async def run(db: Statements, statement: Statement[T]) -> T:
    """What the rows of a statement become."""
    return statement.convert(await db.rows(statement.name, **statement.values))


async def read_one(db: Statements, key: Key[Any]) -> Any:
    """The record of a key, ``None`` if there is none."""
    if isinstance(key, StateKey):
        return await _state(db, key)
    if isinstance(key, IndexKey):
        return await _search.read_indexed(db, key.number)
    return await run(db, READS.key(key))


async def _state(db: Statements, key: StateKey) -> Stored | None:
    found = await db.row("state", name=key.name, known=key.known)
    if found is None:
        return None
    thread = CODEC.thread(found[:THREAD_COLUMNS])
    assert thread.head is not None
    if thread.head.seq == key.known:
        return Stored(thread, None)
    numbers, packings, pieces, checksums = found[THREAD_COLUMNS:]
    rows = zip(
        numbers or (), packings or (), pieces or (), checksums or (), strict=True
    )
    segments = to_segments(rows, thread.family)
    return Stored(thread, tuple(_complete(thread.family, thread.head.runs, segments)))


async def read_segments(
    db: Statements, family: int, runs: Sequence[Run]
) -> list[Segment]:
    """The segments of the runs, in order and complete."""
    found = await db.rows(
        "segments",
        family=family,
        firsts=int8s([run.first for run in runs]),
        lasts=int8s([run.last for run in runs]),
    )
    return _complete(family, runs, to_segments(found, family))


def _complete(
    family: int, runs: Sequence[Run], segments: list[Segment]
) -> list[Segment]:
    found = in_order(runs, segments)
    if found is None:
        raise Corrupt(f"family {family}", "segments are missing")
    return found


async def read_page(db: Statements, query: Query[Any]) -> Page[Any]:
    """One page of a listing; its cursor is the sequence number to go on from."""
    if isinstance(query, Candidates):
        if await _search.exists(db):
            return await _search.read_candidates(db, query)
        return await run(db, READS.candidates(query))
    if isinstance(query, Outdated):
        return await _search.read_outdated(db, query)
    if isinstance(query, Scattered):
        return await _search.read_scattered(db, query)
    if isinstance(query, Surplus):
        last = await run(db, READS.families_end(query))
        return await run(db, READS.surplus(query, last))
    return await run(db, READS.page(query))


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
    found = await db.row("horizon")
    assert found is not None
    (horizon, pending), is_standby, isolation = found
    if is_standby:
        raise Unsupported("a standby cannot tell changes; open the primary")
    if in_one_view and isolation not in SEES_WHAT_IS_NEW:
        raise Unsupported(
            f"a {isolation} transaction may miss changes; read them outside of it"
        )
    # Read no more numbers than a page can need, since the feed may be long; more where
    # many were removed.
    span = limit
    while True:
        last = min(horizon, after + span)
        rows = await db.rows("changes", after=after, last=last, limit=limit)
        if len(rows) == limit or last == horizon or horizon < after:
            break
        span *= 4
    return FeedPage(to_changes(rows, after), is_pending=pending is not None)
