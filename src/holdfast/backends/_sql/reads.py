"""The keys and queries of the port as statements with values, and what rows mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

import orjson

from holdfast._port import (
    Ancestors,
    Candidate,
    Candidates,
    CheckpointEntries,
    CheckpointKey,
    Entries,
    FamilyEntries,
    Key,
    LineLength,
    Marked,
    Matches,
    Moves,
    Query,
    Saves,
    ThreadKey,
    Threads,
    Weight,
    Weights,
)
from holdfast._values.records import Change, Checkpoint, Entry, Move, Page, ThreadRecord
from holdfast.backends._sql.rows import EntryRow, Row, RowCodec

T = TypeVar("T")

# Above every sequence number and every count: "from the newest", "no limit".
LATEST = 1 << 62
LARGEST_CODE_POINT = "\U0010ffff"
KEY = EntryRow._fields.index("key")


class Statement(NamedTuple, Generic[T]):
    """A named statement, its values, and what its rows become.

    A dialect's text may leave out values that it does not need.
    """

    name: str
    values: dict[str, Any]
    convert: Callable[[list[Row]], T]


class Reads:
    """Statements for the keys and queries of which each needs only one."""

    def __init__(self, codec: RowCodec) -> None:
        self._codec = codec
        self._pages: dict[type[Query[Any]], Callable[[Any], Statement[Page[Any]]]] = {
            Ancestors: self._ancestors,
            LineLength: self._line_length,
            Saves: self._saves,
            Marked: self._marked,
            Matches: self._matches,
            Threads: self.threads,
            Moves: self._moves,
            Entries: self._entries,
            FamilyEntries: self._family_entries,
            CheckpointEntries: self._checkpoint_entries,
            Weights: self._weights,
        }

    def key(self, key: Key[Any]) -> Statement[Any]:
        """Gives the record of a key, ``None`` if there is none."""
        if isinstance(key, ThreadKey):
            return Statement("thread_by_name", {"name": key.name}, self._thread)
        assert isinstance(key, CheckpointKey)
        values = {"id": key.id, "family": key.family}
        return Statement("checkpoint_by_id", values, self._checkpoint)

    def page(self, query: Query[Any]) -> Statement[Page[Any]]:
        """Gives a page; its cursor is the sequence number to go on from."""
        return self._pages[type(query)](query)

    def _thread(self, rows: list[Row]) -> ThreadRecord | None:
        return self._codec.thread(rows[0]) if rows else None

    def _checkpoint(self, rows: list[Row]) -> Checkpoint | None:
        return self._codec.checkpoint(rows[0]) if rows else None

    # --- checkpoints ------------------------------------------------------------------

    def _ancestors(self, query: Ancestors) -> Statement[Page[Checkpoint]]:
        start = query.start
        values = {
            "family": None if isinstance(start, str) else start.family,
            "seq": None if isinstance(start, str) else start.seq,
            "thread": start if isinstance(start, str) else None,
            "depth": LATEST if query.limit is None else query.skip + query.limit,
            "skip": query.skip,
            "down_to_step": query.down_to_step,
            "from_step": _or_latest(query.from_step),
        }
        return self._listing("ancestors", values, query.limit)

    def _line_length(self, query: LineLength) -> Statement[Page[int]]:
        def convert(rows: list[Row]) -> Page[int]:
            [(count,)] = rows
            return Page((count,))

        return Statement("line_length", {"thread": query.thread}, convert)

    def _saves(self, query: Saves) -> Statement[Page[Checkpoint]]:
        scope = "family" if query.thread is None else "thread"
        order = "oldest" if query.oldest_first else "newest"
        values = {
            "family": query.family,
            "thread": query.thread,
            "after": query.after or 0,
            "before": _or_latest(query.before),
            "limit": _or_latest(query.limit),
        }
        return self._listing(f"{scope}_saves_{order}", values, query.limit)

    def _marked(self, query: Marked) -> Statement[Page[Checkpoint]]:
        values = {
            "family": query.family,
            "mark": query.tag if query.label is None else query.label,
            "before": _or_latest(query.before),
            "limit": _or_latest(query.limit),
        }
        name = "tagged" if query.label is None else "labelled"
        return self._listing(name, values, query.limit)

    def _listing(
        self, name: str, values: dict[str, Any], limit: int | None
    ) -> Statement[Page[Checkpoint]]:
        def convert(rows: list[Row]) -> Page[Checkpoint]:
            items = tuple(map(self._codec.checkpoint, rows))
            return Page(items, items[-1].seq if _is_full(items, limit) else None)

        return Statement(name, values, convert)

    def _matches(self, query: Matches) -> Statement[Page[Checkpoint]]:
        values = {
            "prefix": query.prefix,
            "end": query.prefix + LARGEST_CODE_POINT,
            "after": query.after,
            "family": query.family,
            "limit": query.limit,
        }

        def convert(rows: list[Row]) -> Page[Checkpoint]:
            return Page(tuple(map(self._codec.checkpoint, rows)))

        return Statement("matches", values, convert)

    # --- threads and what happened in them --------------------------------------------

    def threads(self, query: Threads) -> Statement[Page[ThreadRecord]]:
        """Gives a page of threads."""
        values = {
            "family": query.family,
            "owner": query.owner,
            "agent": query.agent,
            "kind": query.kind,
            "without": query.without,
            "prefix": query.prefix,
            "after": _or_latest(query.after),
            "every": query.every,
            "limit": _or_latest(query.limit),
        }

        def convert(rows: list[Row]) -> Page[ThreadRecord]:
            items = tuple(map(self._codec.thread, rows))
            full = _is_full(items, query.limit)
            return Page(items, items[-1].changed if full else None)

        return Statement(_threads_name(query), values, convert)

    def candidates(self, query: Candidates) -> Statement[Page[Candidate]]:
        """Gives all threads that a search is about, for where there is no index."""
        name, values, convert = self.threads(
            Threads(
                kind=query.kind,
                owner=query.owner,
                agent=query.agent,
                after=query.after,
                limit=query.limit,
            )
        )

        def convert_all(rows: list[Row]) -> Page[Candidate]:
            threads = convert(rows)
            return Page(tuple(map(Candidate, threads)), threads.cursor)

        return Statement(name, values, convert_all)

    def _moves(self, query: Moves) -> Statement[Page[Move]]:
        values = {
            "name": query.thread,
            "before": _or_latest(query.before),
            "limit": _or_latest(query.limit),
        }

        def convert(rows: list[Row]) -> Page[Move]:
            items = tuple(
                Move(seq, query.thread, kind, source, target, at)
                for seq, kind, source, target, at in rows
            )
            full = _is_full(items, query.limit)
            return Page(items, items[-1].seq if full else None)

        return Statement("moves", values, convert)

    def _entries(self, query: Entries) -> Statement[Page[Entry]]:
        # A statement for each: one plan for all would read the whole journal.
        name = "entry_of"
        if query.checkpoint is None:
            name = "entries"
        elif query.prefix is not None:
            name = "entries_from"
        elif query.key is None:
            name = "entries_of"
        values = {
            "name": query.thread,
            "checkpoint": query.checkpoint,
            "key": query.key,
            **_bounds(query.prefix or ""),
        }

        def convert(rows: list[Row]) -> Page[Entry]:
            wanted = [row for row in rows if query.key in (None, row[KEY])]
            return Page(tuple(self._codec.entry(row, query.thread) for row in wanted))

        return Statement(name, values, convert)

    def _family_entries(self, query: FamilyEntries) -> Statement[Page[Entry]]:
        values = {"family": query.family, **_bounds(query.prefix)}

        def convert(rows: list[Row]) -> Page[Entry]:
            return Page(tuple(self._codec.entry(row[1:], row[0]) for row in rows))

        return Statement("family_entries", values, convert)

    def _checkpoint_entries(self, query: CheckpointEntries) -> Statement[Page[Entry]]:
        thread = query.thread
        values = {
            "family": thread.family,
            "number": thread.number,
            "name": thread.id,
            "checkpoints": orjson.dumps(query.checkpoints).decode(),
        }

        def convert(rows: list[Row]) -> Page[Entry]:
            return Page(tuple([self._codec.entry(row, thread.id) for row in rows]))

        return Statement("checkpoint_entries", values, convert)

    def _weights(self, query: Weights) -> Statement[Page[Weight]]:
        def convert(rows: list[Row]) -> Page[Weight]:
            return Page(tuple(Weight(*row) for row in rows))

        return Statement("weights", {"limit": _or_latest(query.limit)}, convert)


def _bounds(prefix: str) -> dict[str, Any]:
    return {"first": prefix, "last": prefix + LARGEST_CODE_POINT}


def to_changes(rows: list[Row], after: int) -> Page[Change]:
    """A page of the feed behind a sequence number."""
    found = tuple(Change(*row) for row in rows)
    return Page(found, found[-1].seq if found else after)


def _threads_name(query: Threads) -> str:
    if query.family is not None:
        return "family_threads"
    if query.owner is not None:
        return "owner_threads"
    return "threads" if query.agent is None else "agent_threads"


def _or_latest(number: int | None) -> int:
    return LATEST if number is None else number


def _is_full(items: tuple[Any, ...], limit: int | None) -> bool:
    return bool(items) and len(items) == limit
