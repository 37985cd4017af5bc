"""The keys and queries of the port as statements on one session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from holdfast._port import (
    Ancestors,
    Candidates,
    CheckpointKey,
    Entries,
    IndexKey,
    Key,
    Marked,
    Matches,
    Moves,
    Outdated,
    Query,
    Saves,
    Scattered,
    StateKey,
    Stored,
    ThreadKey,
    Threads,
    Weight,
    Weights,
)
from holdfast._values.records import Change, Checkpoint, Move, Page, Run, Segment
from holdfast.backends.postgres import _rows, _search
from holdfast.backends.postgres._arrays import int8s
from holdfast.backends.postgres._session import Statements
from holdfast.errors import Corrupt, Unsupported

LATEST = 1 << 62
SEES_WHAT_IS_NEW = frozenset({"read committed", "read uncommitted"})
LARGEST_CODE_POINT = "\U0010ffff"


async def read_one(db: Statements, key: Key[Any]) -> Any:
    """The record of a key, ``None`` if there is none."""
    if isinstance(key, ThreadKey):
        found = await db.row("thread_by_name", name=key.name)
        return _rows.to_thread(found) if found else None
    if isinstance(key, StateKey):
        return await _state(db, key)
    if isinstance(key, IndexKey):
        return await _search.read_indexed(db, key.number)
    assert isinstance(key, CheckpointKey)
    found = await db.row("checkpoint_by_id", id=key.id, family=key.family)
    return _rows.to_checkpoint(found) if found else None


async def _state(db: Statements, key: StateKey) -> Stored | None:
    found = await db.row("state", name=key.name, known=key.known)
    if found is None:
        return None
    thread = _rows.to_thread(found[: _rows.STATE_COLUMNS])
    assert thread.head is not None
    if thread.head.seq == key.known:
        return Stored(thread, None)
    numbers, packings, pieces, checksums = found[_rows.STATE_COLUMNS :]
    rows = zip(
        numbers or (), packings or (), pieces or (), checksums or (), strict=True
    )
    segments = _rows.to_segments(thread.family, rows)
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
    return _complete(family, runs, _rows.to_segments(family, found))


def _complete(
    family: int, runs: Sequence[Run], segments: list[Segment]
) -> list[Segment]:
    found = _rows.in_order(runs, segments)
    if found is None:
        raise Corrupt(f"family {family}", "segments are missing")
    return found


async def read_page(db: Statements, query: Query[Any]) -> Page[Any]:
    """One page of a listing; its cursor is the sequence number to go on from."""
    return await _PAGES[type(query)](db, query)


class News(msgspec.Struct, frozen=True):
    """What there is to tell, and whether somebody is about to have more."""

    page: Page[Change]
    is_pending: bool


async def read_changes(
    db: Statements, after: int, limit: int, *, in_one_view: bool = False
) -> News:
    """The feed behind a sequence number, as far as it is settled.

    ``in_one_view`` says that both statements may be part of one transaction.
    """
    # One statement after the other: rows are read when the horizon is known.
    found = await db.row("horizon")
    assert found is not None
    (horizon, pending), is_standby, isolation = found
    if is_standby:
        raise Unsupported("a standby cannot tell changes; open the primary")
    if in_one_view and isolation not in SEES_WHAT_IS_NEW:
        raise Unsupported(
            f"a {isolation} transaction may miss changes; read them outside of it"
        )
    # Never more numbers than a page can need: the feed may be long. Where many were
    # removed, more are looked at.
    span = limit
    while True:
        last = min(horizon, after + span)
        rows = await db.rows("changes", after=after, last=last, limit=limit)
        if len(rows) == limit or last == horizon or horizon < after:
            break
        span *= 4
    changes = tuple(Change(*row) for row in rows)
    page = Page(changes, changes[-1].seq if changes else after)
    return News(page, is_pending=pending is not None)


def _checkpoints(found: list[_rows.Row], limit: int | None) -> Page[Checkpoint]:
    items = tuple(map(_rows.to_checkpoint, found))
    return Page(items, items[-1].seq if items and len(items) == limit else None)


async def _ancestors(db: Statements, query: Ancestors) -> Page[Checkpoint]:
    start = query.start
    found = await db.rows(
        "ancestors",
        family=None if isinstance(start, str) else start.family,
        seq=None if isinstance(start, str) else start.seq,
        thread=start if isinstance(start, str) else None,
        depth=LATEST if query.limit is None else query.skip + query.limit,
        skip=query.skip,
        down_to_step=query.down_to_step,
        from_step=LATEST if query.from_step is None else query.from_step,
    )
    return _checkpoints(found, query.limit)


async def _saves(db: Statements, query: Saves) -> Page[Checkpoint]:
    found = await db.rows(
        "saves_oldest" if query.oldest_first else "saves_newest",
        family=query.family,
        thread=query.thread,
        after=query.after or 0,
        before=LATEST if query.before is None else query.before,
        limit=query.limit,
    )
    return _checkpoints(found, query.limit)


async def _marked(db: Statements, query: Marked) -> Page[Checkpoint]:
    found = await db.rows(
        "tagged" if query.label is None else "labelled",
        family=query.family,
        mark=query.tag if query.label is None else query.label,
        before=LATEST if query.before is None else query.before,
        limit=query.limit,
    )
    return _checkpoints(found, query.limit)


async def _matches(db: Statements, query: Matches) -> Page[Checkpoint]:
    found = await db.rows(
        "matches",
        prefix=query.prefix,
        end=query.prefix + LARGEST_CODE_POINT,
        after=query.after,
        family=query.family,
        limit=query.limit,
    )
    return Page(tuple(map(_rows.to_checkpoint, found)))


async def _threads(db: Statements, query: Threads) -> Page[Any]:
    values: dict[str, Any] = {
        "after": LATEST if query.after is None else query.after,
        "every": query.every,
        "limit": query.limit,
    }
    if query.family is not None:
        found = await db.rows("family_threads", family=query.family, **values)
    else:
        found = await db.rows(
            "threads",
            kind=query.kind,
            prefix=query.prefix,
            owner=query.owner,
            agent=query.agent,
            **values,
        )
    items = tuple(map(_rows.to_thread, found))
    return Page(items, items[-1].changed if len(items) == query.limit else None)


async def _moves(db: Statements, query: Moves) -> Page[Move]:
    place = await db.row("place", name=query.thread)
    if place is None:
        return Page(())
    found = await db.rows(
        "moves",
        family=place[0],
        number=place[1],
        before=LATEST if query.before is None else query.before,
        limit=query.limit,
    )
    items = tuple(
        Move(seq, query.thread, kind, source, target, at)
        for seq, kind, source, target, at in found
    )
    return Page(items, items[-1].seq if items and len(items) == query.limit else None)


async def _entries(db: Statements, query: Entries) -> Page[Any]:
    # Statements of their own: one plan for all would look through the whole journal.
    place = {"name": query.thread}
    if query.checkpoint is None:
        found = await db.rows("entries", **place)
    elif query.key is None:
        found = await db.rows("entries_of", checkpoint=query.checkpoint, **place)
    else:
        place |= {"checkpoint": query.checkpoint, "key": query.key}
        found = await db.rows("entry_of", **place)
    entries = (_rows.to_entry(row, query.thread) for row in found)
    return Page(tuple(e for e in entries if query.key in (None, e.key)))


async def _weights(db: Statements, query: Weights) -> Page[Any]:
    found = await db.rows("weights", limit=query.limit)
    return Page(tuple(Weight(*row) for row in found))


_PAGES: dict[type[Query[Any]], Callable[[Statements, Any], Awaitable[Page[Any]]]] = {
    Ancestors: _ancestors,
    Saves: _saves,
    Marked: _marked,
    Matches: _matches,
    Threads: _threads,
    Moves: _moves,
    Entries: _entries,
    Outdated: _search.read_outdated,
    Scattered: _search.read_scattered,
    Candidates: _search.read_candidates,
    Weights: _weights,
}
