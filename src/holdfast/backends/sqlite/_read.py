"""Running the reads of the port on one connection."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, TypeVar

import apsw
import orjson

from holdfast._port import (
    Candidate,
    Candidates,
    FamilySize,
    Key,
    Outdated,
    OutdatedCount,
    Pieces,
    Scattered,
    SegmentsKey,
    StateKey,
    Stored,
    Surplus,
    ThreadKey,
)
from holdfast._values.records import Change, Page, Run, Segment
from holdfast._values.runs import state_runs
from holdfast.backends._sql.reads import Reads, Statement, to_changes
from holdfast.backends._sql.rows import Row, holds, to_segments
from holdfast.backends.sqlite import _candidates as _fts_candidates
from holdfast.backends.sqlite import _graves, _search
from holdfast.backends.sqlite._connection import snapshot
from holdfast.backends.sqlite._rows import CODEC
from holdfast.backends.sqlite._statements import QUERIES, row, rows
from holdfast.errors import Corrupt

T = TypeVar("T")

READS = Reads(CODEC, lambda numbers: orjson.dumps(numbers).decode())


def run(db: apsw.Connection, statement: Statement[T]) -> T:
    """The converted rows of a statement."""
    return statement.convert(rows(db, statement.name, **statement.values))


def read_all(db: apsw.Connection, keys: Sequence[Key[Any]]) -> list[Any]:
    """The records of keys in the same order, ``None`` for a missing one."""
    wanted = [key for key in keys if isinstance(key, SegmentsKey)]
    pieces = iter(_pieces(db, wanted) if wanted else ())
    return [
        next(pieces) if isinstance(key, SegmentsKey) else read_one(db, key)
        for key in keys
    ]


def _pieces(db: apsw.Connection, keys: list[SegmentsKey]) -> list[Pieces | None]:
    """All of them in one statement."""
    bounds = [
        (key.family << 32 | run.first, key.family << 32 | run.last)
        for key in keys
        for run in key.runs
    ]
    found: dict[int, list[Row]] = {place: [] for place in range(len(bounds))}
    for read in rows(db, "pieces", bounds=orjson.dumps(bounds).decode()):
        found[read[0]].append(read[1:])
    runs = iter(found.values())
    return [_complete(key, islice(runs, len(key.runs))) for key in keys]


def _complete(key: SegmentsKey, runs: Iterable[list[Row]]) -> Pieces | None:
    segments: list[Segment] = []
    try:
        for (first, last), found in zip(key.runs, runs, strict=True):
            read = to_segments(sorted(found), key.family)
            if len(read) != last - first + 1 and not holds(read, Run(first, last)):
                return None
            segments += read
    except Corrupt:
        return None
    return Pieces(tuple(segments))


def read_one(db: apsw.Connection, key: Key[Any]) -> Any:
    """The record of a key, ``None`` if there is none."""
    if isinstance(key, StateKey):
        with snapshot(db):
            return _state(db, key)
    if isinstance(key, ThreadKey):
        # A tombstone is seldom asked for, and its statement takes longer.
        found = row(db, "living_thread", name=key.name)
        found = found or _graves.find_thread(db, key.name)
        return CODEC.thread(found) if found else None
    return run(db, READS.key(key))


def _state(db: apsw.Connection, key: StateKey) -> Stored | None:
    found = row(db, "living_thread", name=key.name)
    thread = CODEC.thread(found) if found else None
    if thread is None or thread.head is None:
        return None
    if thread.head.seq == key.known:
        return Stored(thread, None)
    runs = state_runs(thread.head.runs)
    return Stored(thread, read_segments(db, thread.family, runs))


def read_segments(
    db: apsw.Connection, family: int, runs: Sequence[Run]
) -> list[Segment]:
    """The segments of the runs, in order and complete."""
    found: list[Segment] = []
    for run in runs:
        first, last = run
        bounds = (family << 32 | first, family << 32 | last)
        # All at once: to ask for the rows one by one takes a quarter longer.
        rows_ = db.execute(QUERIES["segments"], bounds).fetchall()
        read = to_segments(rows_, family)
        if len(read) != last - first + 1 and not holds(read, run):
            raise Corrupt(f"family {family}", f"segments {first}-{last} are short")
        found += read
    return found


def read_page(db: apsw.Connection, query: Any) -> Page[Any]:
    """One page of a listing; its cursor is the sequence number to go on from."""
    match query:
        case Candidates():
            return _candidates(db, query)
        case Outdated():
            return _search.read_outdated(db, query)
        case OutdatedCount():
            return _search.count_outdated(db, query)
        case Scattered():
            return _search.read_scattered(db, query)
        case Surplus():
            return _surplus(db, query)
        case _:
            return run(db, READS.page(query))


def read_changes(db: apsw.Connection, after: int, limit: int) -> Page[Change]:
    """The feed behind a sequence number."""
    return to_changes(rows(db, "changes", after=after, limit=limit), after)


def _candidates(db: apsw.Connection, query: Candidates) -> Page[Candidate]:
    with snapshot(db):
        if _search.exists(db):
            found = _fts_candidates.read_candidates(db, query)
            if found is not None:
                return found
    return run(db, READS.candidates(query))


def _surplus(db: apsw.Connection, query: Surplus) -> Page[FamilySize]:
    with snapshot(db):
        return run(db, READS.surplus(query, run(db, READS.families_end(query))))
