"""The keys and queries of the port as statements on one connection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import apsw

from holdfast._port import (
    Ancestors,
    Candidate,
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
from holdfast.backends.sqlite import _rows, _search
from holdfast.backends.sqlite._statements import QUERIES
from holdfast.backends.sqlite._write import row, rows
from holdfast.errors import Corrupt

LATEST = 1 << 62
NO_LIMIT = -1
LARGEST_CODE_POINT = "\U0010ffff"


def read_one(db: apsw.Connection, key: Key[Any]) -> Any:
    """The record of a key, ``None`` if there is none."""
    if isinstance(key, ThreadKey):
        found = row(db, "thread_by_name", name=key.name)
        return _rows.to_thread(found) if found else None
    if isinstance(key, StateKey):
        with db:  # one view for both statements
            return _state(db, key)
    if isinstance(key, IndexKey):
        return _search.read_indexed(db, key.number)
    assert isinstance(key, CheckpointKey)
    found = row(db, "checkpoint_by_id", id=key.id, family=key.family)
    return _rows.to_checkpoint(found) if found else None


def _state(db: apsw.Connection, key: StateKey) -> Stored | None:
    found = row(db, "living_thread", name=key.name)
    thread = _rows.to_thread(found) if found else None
    if thread is None or thread.head is None:
        return None
    if thread.head.seq == key.known:
        return Stored(thread, None)
    return Stored(thread, tuple(read_segments(db, thread.family, thread.head.runs)))


def read_segments(
    db: apsw.Connection, family: int, runs: Sequence[Run]
) -> list[Segment]:
    """The segments of the runs, in order and complete."""
    found: list[Segment] = []
    for run in runs:
        bounds = (family << 32 | run.first, family << 32 | run.last)
        read = db.execute(QUERIES["segments"], bounds).fetchall()
        if len(read) != run.last - run.first + 1:
            raise Corrupt(
                f"family {family}", f"segments {run.first}-{run.last} are short"
            )
        found += _rows.to_segments(read)
    return found


def read_page(db: apsw.Connection, query: Query[Any]) -> Page[Any]:
    """One page of a listing; its cursor is the sequence number to go on from."""
    return _PAGES[type(query)](db, query)


def read_changes(db: apsw.Connection, after: int, limit: int) -> Page[Change]:
    """The feed behind a sequence number."""
    found = tuple(Change(*r) for r in rows(db, "changes", after=after, limit=limit))
    return Page(found, found[-1].seq if found else after)


def _checkpoints(found: list[_rows.Row], limit: int | None) -> Page[Checkpoint]:
    items = tuple(map(_rows.to_checkpoint, found))
    return Page(items, items[-1].seq if items and len(items) == limit else None)


def _ancestors(db: apsw.Connection, query: Ancestors) -> Page[Checkpoint]:
    depth = LATEST if query.limit is None else query.skip + query.limit
    found = rows(
        db,
        "ancestors",
        seq=None if isinstance(query.start, str) else query.start.seq,
        thread=query.start if isinstance(query.start, str) else None,
        depth=depth,
        skip=query.skip,
        down_to_step=query.down_to_step,
        from_step=LATEST if query.from_step is None else query.from_step,
    )
    return _checkpoints(found, query.limit)


def _saves(db: apsw.Connection, query: Saves) -> Page[Checkpoint]:
    scope = "family" if query.thread is None else "thread"
    order = "oldest" if query.oldest_first else "newest"
    values: dict[str, Any] = {"family": query.family, "after": query.after or 0}
    if query.thread is not None:
        values["thread"] = query.thread
    found = rows(
        db,
        f"{scope}_saves_{order}",
        before=LATEST if query.before is None else query.before,
        limit=NO_LIMIT if query.limit is None else query.limit,
        **values,
    )
    return _checkpoints(found, query.limit)


def _marked(db: apsw.Connection, query: Marked) -> Page[Checkpoint]:
    found = rows(
        db,
        "tagged" if query.label is None else "labelled",
        family=query.family,
        mark=query.tag if query.label is None else query.label,
        before=LATEST if query.before is None else query.before,
        limit=NO_LIMIT if query.limit is None else query.limit,
    )
    return _checkpoints(found, query.limit)


def _matches(db: apsw.Connection, query: Matches) -> Page[Checkpoint]:
    found = rows(
        db,
        "matches",
        prefix=query.prefix,
        end=query.prefix + LARGEST_CODE_POINT,
        after=query.after,
        family=query.family,
        limit=query.limit,
    )
    return Page(tuple(map(_rows.to_checkpoint, found)))


def _threads(db: apsw.Connection, query: Threads) -> Page[Any]:
    values: dict[str, Any] = {
        "after": LATEST if query.after is None else query.after,
        "every": query.every,
        "limit": NO_LIMIT if query.limit is None else query.limit,
    }
    if query.family is not None:
        found = rows(db, "family_threads", family=query.family, **values)
    else:
        values |= {"kind": query.kind, "prefix": query.prefix}
        if query.owner is not None:
            values |= {"agent": query.agent}
            found = rows(db, "owner_threads", owner=query.owner, **values)
        elif query.agent is not None:
            found = rows(db, "agent_threads", agent=query.agent, **values)
        else:
            found = rows(db, "threads", **values)
    items = tuple(map(_rows.to_thread, found))
    return Page(items, items[-1].changed if len(items) == query.limit else None)


def _moves(db: apsw.Connection, query: Moves) -> Page[Move]:
    thread = row(db, "live_thread", name=query.thread)
    if thread is None:
        return Page(())
    found = rows(
        db,
        "moves",
        number=thread[0],
        family=thread[1],
        before=LATEST if query.before is None else query.before,
        limit=NO_LIMIT if query.limit is None else query.limit,
    )
    items = tuple(
        Move(seq, query.thread, kind, source, target, at)
        for seq, kind, source, target, at in found
    )
    return Page(items, items[-1].seq if items and len(items) == query.limit else None)


def _entries(db: apsw.Connection, query: Entries) -> Page[Any]:
    thread = row(db, "live_thread", name=query.thread)
    if thread is None:
        return Page(())
    found = rows(
        db, "entries", number=thread[0], checkpoint=query.checkpoint, key=query.key
    )
    return Page(tuple(_rows.to_entry(r, query.thread) for r in found))


def _candidates(db: apsw.Connection, query: Candidates) -> Page[Candidate]:
    with _search.snapshot(db):
        if _search.exists(db):
            return _search.read_candidates(db, query)
    everything = Threads(
        kind=query.kind,
        owner=query.owner,
        agent=query.agent,
        after=query.after,
        limit=query.limit,
    )
    threads = _threads(db, everything)
    return Page(tuple(map(Candidate, threads)), threads.cursor)


def _weights(db: apsw.Connection, query: Weights) -> Page[Weight]:
    limit = NO_LIMIT if query.limit is None else query.limit
    return Page(tuple(Weight(*row) for row in rows(db, "weights", limit=limit)))


_PAGES: dict[type[Query[Any]], Callable[[apsw.Connection, Any], Page[Any]]] = {
    Ancestors: _ancestors,
    Saves: _saves,
    Marked: _marked,
    Matches: _matches,
    Threads: _threads,
    Moves: _moves,
    Entries: _entries,
    Outdated: _search.read_outdated,
    Scattered: _search.read_scattered,
    Candidates: _candidates,
    Weights: _weights,
}
