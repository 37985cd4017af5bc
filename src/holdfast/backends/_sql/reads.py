"""The keys and queries of the port as statements with values, and what rows mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from operator import itemgetter
from typing import Any, Generic, TypeVar

import msgspec
import orjson

from holdfast._port import (
    Ancestors,
    Candidate,
    Candidates,
    CheckpointEntries,
    CheckpointKey,
    Entries,
    FamilyEntries,
    FamilyMoves,
    FamilySaves,
    FamilySize,
    FamilySizes,
    FamilySums,
    FamilyThreads,
    Horizon,
    Key,
    KindCount,
    Kinds,
    LineLength,
    Marked,
    Matches,
    Moves,
    NumberedSaves,
    Outline,
    Outlines,
    OwnEntries,
    Query,
    SavedIn,
    Saves,
    SegmentSize,
    SegmentSizes,
    Sums,
    Surplus,
    ThreadKey,
    ThreadMoves,
    Threads,
    Total,
    Totals,
    Weight,
    Weights,
    family_queries,
    index_queries,
)
from holdfast._values.records import (
    LONGEST_NAME,
    SEPARATOR,
    Change,
    Checkpoint,
    Entry,
    Move,
    Page,
    ThreadRecord,
)
from holdfast.backends._sql.rows import CheckpointRow, EntryRow, Row, RowCodec

T = TypeVar("T")

# Above every sequence number and every count: "from the newest", "no limit".
LATEST = 1 << 62
LARGEST_CODE_POINT = "\U0010ffff"
# Appended to a prefix it is above every name with that prefix: names are counted in
# bytes.
ABOVE = LARGEST_CODE_POINT * (LONGEST_NAME // 4 + 1)
KEY = EntryRow.__struct_fields__.index("key")
PARENT = CheckpointRow.__struct_fields__.index("parent")
# The parameters of the part ``described``.
ITEMS = ("item", "second")
TEXTS = ("", "_b", "_c", "_d")


class Statement(msgspec.Struct, Generic[T], frozen=True):
    """A named statement, its values, and what its rows become.

    A dialect's text may leave out values that it does not need.
    """

    name: str
    values: dict[str, Any]
    convert: Callable[[list[Row]], T]


class Reads:
    """Statements for the keys and queries of which each needs only one.

    ``numbers`` makes several numbers one parameter, as the dialect takes it.
    """

    def __init__(
        self, codec: RowCodec, numbers: Callable[[Sequence[int]], Any]
    ) -> None:
        self._codec = codec
        self._numbers = numbers
        self._pages: dict[type, Callable[[Any], Statement[Page[Any]]]] = {
            Ancestors: self._ancestors,
            LineLength: self._line_length,
            Saves: self._saves,
            Marked: self._marked,
            Matches: self._matches,
            Threads: self.threads,
            Moves: self._moves,
            FamilyMoves: self._family_moves,
            ThreadMoves: self._thread_moves,
            Entries: self._entries,
            FamilyEntries: self._family_entries,
            OwnEntries: self._own_entries,
            CheckpointEntries: self._checkpoint_entries,
            Weights: self._weights,
            SegmentSizes: self._segment_sizes,
            Kinds: self._kinds,
            Horizon: self._horizon,
            SavedIn: self._saved_in,
            Totals: self._totals,
            FamilyThreads: self._family_threads,
            FamilySaves: self._family_saves,
            FamilySizes: self._family_sizes,
            FamilySums: self._family_sums,
            Outlines: self._outlines,
            NumberedSaves: self._numbered_saves,
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
        return Statement("line_length", {"thread": query.thread}, _number)

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
            "within": query.within,
            "direct": query.direct,
            "separator": SEPARATOR,
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
            **_narrowed(query),
            **_described(query.metadata),
        }

        def convert(rows: list[Row]) -> Page[ThreadRecord]:
            items = tuple(map(self._codec.thread, rows))
            full = _is_full(items, query.limit)
            return Page(items, items[-1].changed if full else None)

        return Statement(_threads_name(query), values, convert)

    def candidates(self, query: Candidates) -> Statement[Page[Candidate]]:
        """Gives all threads that a search is about, for where there is no index."""
        listing = self.threads(
            Threads(
                kind=query.kind,
                without=query.without,
                owner=query.owner,
                agent=query.agent,
                after=query.after,
                limit=query.limit,
            )
        )

        def convert_all(rows: list[Row]) -> Page[Candidate]:
            threads = listing.convert(rows)
            return Page(tuple(map(index_queries.Candidate, threads)), threads.cursor)

        return Statement(listing.name, listing.values, convert_all)

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

    def _family_moves(self, query: FamilyMoves) -> Statement[Page[Move]]:
        values = {"families": self._numbers(query.families)}
        return Statement("rescue_family_moves", values, _named_moves)

    def _thread_moves(self, query: ThreadMoves) -> Statement[Page[Move]]:
        values = {
            "family": query.family,
            "number": query.number,
            "before": _or_latest(query.before),
            "limit": query.limit,
        }
        return Statement("thread_moves", values, _named_moves)

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
        }
        if query.prefix is not None:
            values |= _bounds(query.prefix)

        def convert(rows: list[Row]) -> Page[Entry]:
            wanted = [
                self._codec.entry(row, query.thread)
                for row in rows
                if query.key in (None, row[KEY])
            ]
            return Page(tuple(wanted))

        return Statement(name, values, convert)

    def _family_entries(self, query: FamilyEntries) -> Statement[Page[Entry]]:
        values = {"family": query.family, **_bounds(query.prefix)}
        return Statement("family_entries", values, self._named_entries)

    def _own_entries(self, query: OwnEntries) -> Statement[Page[Entry]]:
        names = list(query.threads)
        values = {"names": names, "names_json": orjson.dumps(names).decode()}
        values |= _bounds(query.prefix)
        return Statement("own_entries", values, self._named_entries)

    def _named_entries(self, rows: list[Row]) -> Page[Entry]:
        # By number, where the statement does not do it.
        rows.sort(key=itemgetter(1))
        return Page(tuple([self._codec.entry(row[1:], row[0]) for row in rows]))

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
            return Page(tuple(family_queries.Weight(*row) for row in rows))

        return Statement("weights", {"limit": _or_latest(query.limit)}, convert)

    def _segment_sizes(self, query: SegmentSizes) -> Statement[Page[SegmentSize]]:
        def convert(rows: list[Row]) -> Page[SegmentSize]:
            found = tuple(family_queries.SegmentSize(*row) for row in rows)
            if len(found) < query.limit:
                return Page(found)
            return Page(found, found[-1].family << 32 | found[-1].number)

        values = {"after": query.after, "limit": query.limit}
        return Statement("segment_sizes", values, convert)

    # --- counts -----------------------------------------------------------------------

    def _kinds(self, query: Kinds) -> Statement[Page[KindCount]]:
        del query  # it has no conditions

        def convert(rows: list[Row]) -> Page[KindCount]:
            return Page(tuple(family_queries.KindCount(*row) for row in rows))

        return Statement("kinds", {}, convert)

    def _horizon(self, query: Horizon) -> Statement[Page[int]]:
        del query  # it has no conditions
        return Statement("last_settled", {}, _number)

    def _saved_in(self, query: SavedIn) -> Statement[Page[int]]:
        return Statement("saved_in", {"kind": query.kind}, _number)

    def _totals(self, query: Totals) -> Statement[Page[Total]]:
        def convert(rows: list[Row]) -> Page[Total]:
            [(total, without)] = rows
            names = orjson.loads(without) if without else ()
            return Page((family_queries.Total(total, tuple(names)),))

        steps = [f"[{s}]" if isinstance(s, int) else f'."{s}"' for s in query.path]
        values = {
            "kind": query.kind,
            "path": "$" + "".join(steps),
            "steps": list(map(str, query.path)),
        }
        return Statement("totals", values, convert)

    # --- several families -------------------------------------------------------------

    def families_end(self, query: Surplus) -> Statement[int | None]:
        """Gives the last family of a page, ``None`` if the page is the last."""

        def convert(rows: list[Row]) -> int | None:
            return rows[0][0] if rows else None

        values = {"after": query.after, "limit": query.limit}
        return Statement("families_end", values, convert)

    def surplus(self, query: Surplus, last: int | None) -> Statement[Page[FamilySize]]:
        """Gives the families of a page up to its last."""
        values = {
            "after": query.after,
            "last": _or_latest(last),
            "more_than": query.more_than,
            "saved_before": query.saved_before,
        }
        # Without the age, the smallest index is enough.
        name = "surplus" if query.saved_before is None else "aged_surplus"

        def convert(rows: list[Row]) -> Page[FamilySize]:
            return Page(tuple(family_queries.FamilySize(*row) for row in rows), last)

        return Statement(name, values, convert)

    def _family_threads(self, query: FamilyThreads) -> Statement[Page[ThreadRecord]]:
        def convert(rows: list[Row]) -> Page[ThreadRecord]:
            return Page(tuple(map(self._codec.thread, rows)))

        values = {"families": self._numbers(query.families)}
        return Statement("threads_of_families", values, convert)

    def _family_saves(self, query: FamilySaves) -> Statement[Page[Checkpoint]]:
        values = {"families": self._numbers(query.families)}
        return self._listing("saves_of_families", values, None)

    def _family_sizes(self, query: FamilySizes) -> Statement[Page[FamilySize]]:
        def convert(rows: list[Row]) -> Page[FamilySize]:
            return Page(tuple(family_queries.FamilySize(*row) for row in rows))

        families, up_to = self._numbers(query.families), _or_latest(query.up_to)
        values = {"families": families, "up_to": up_to}
        return Statement("sizes_of_families", values, convert)

    def _family_sums(self, query: FamilySums) -> Statement[Page[Sums]]:
        def convert(rows: list[Row]) -> Page[Sums]:
            return Page(tuple(family_queries.Sums(*row) for row in rows))

        values = {"families": self._numbers(query.families)}
        return Statement("sums_of_families", values, convert)

    def _outlines(self, query: Outlines) -> Statement[Page[Outline]]:
        def convert(rows: list[Row]) -> Page[Outline]:
            items = tuple(map(self._outline, rows))
            return Page(items, items[-1].seq if _is_full(items, query.limit) else None)

        values = {
            "family": query.family,
            "thread": query.thread,
            "after": query.after,
            "limit": query.limit,
        }
        return Statement("outlines", values, convert)

    def _outline(self, row: Row) -> Outline:
        c = self._codec.checkpoint(row)  # it compares the checksum
        parent: int | None = row[PARENT]
        marks = c.label is not None, bool(c.tags)
        return family_queries.Outline(
            c.seq, parent, c.thread_number, c.saved_at, *marks, c.runs
        )

    def _numbered_saves(self, query: NumberedSaves) -> Statement[Page[Checkpoint]]:
        numbers = self._numbers(query.numbers)
        values = {"family": query.family, "numbers": numbers}
        return self._listing("saves_by_number", values, None)


def _named_moves(rows: list[Row]) -> Page[Move]:
    return Page(tuple([Move(*row) for row in rows]))


def _number(rows: list[Row]) -> Page[int]:
    [(count,)] = rows
    return Page((count,))


def _bounds(prefix: str) -> dict[str, Any]:
    return {"first": prefix, "last": prefix + LARGEST_CODE_POINT}


def to_changes(rows: list[Row], after: int) -> Page[Change]:
    """A page of the feed behind a sequence number."""
    found = tuple(Change(*row) for row in rows)
    return Page(found, found[-1].seq if found else after)


def _threads_name(query: Threads) -> str:
    if query.family is not None:
        return "family_threads"
    if any(value is not None for value in _narrowed(query).values()):
        return "narrowed_threads"
    return "described_threads" if query.metadata else "threads"


def _narrowed(query: Threads) -> dict[str, str | None]:
    """The one condition that narrows a query, most likely to the fewest threads."""
    conditions = {
        "by_owner": query.owner,
        "by_agent": query.agent,
        "by_name": query.prefix,
        "by_kind": query.kind,
    }
    by = next((by for by, value in conditions.items() if value is not None), None)
    narrowed = {name: v if name == by else None for name, v in conditions.items()}
    prefix = narrowed["by_name"]
    return {**narrowed, "by_end": None if prefix is None else prefix + ABOVE}


def _described(metadata: Sequence[Sequence[bytes]]) -> dict[str, bytes | None]:
    """Two of the items, those with the longest texts; more of them narrow little."""
    usable = [texts for texts in metadata if len(texts) <= len(TEXTS)]
    chosen = sorted(usable, key=lambda texts: -len(texts[0]))[: len(ITEMS)]
    return {
        f"{item}{text}": found
        for item, texts in zip_longest(ITEMS, chosen, fillvalue=())
        for text, found in zip_longest(TEXTS, texts)
    }


def _or_latest(number: int | None) -> int:
    return LATEST if number is None else number


def _is_full(items: tuple[Any, ...], limit: int | None) -> bool:
    return bool(items) and len(items) == limit
