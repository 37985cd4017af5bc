"""The index for searching: FTS5, and which texts of which threads are in it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import apsw
import orjson

from holdfast._port import (
    Candidate,
    Candidates,
    Indexed,
    Indexing,
    Outdated,
    Scattered,
    Stale,
    Stretch,
)
from holdfast._values.records import Page
from holdfast.backends._sql.reads import LATEST
from holdfast.backends._sql.rows import Row
from holdfast.backends.sqlite._connection import snapshot, transaction, translation
from holdfast.backends.sqlite._rows import CODEC
from holdfast.backends.sqlite._statements import load_queries
from holdfast.errors import Corrupt

QUERIES = load_queries("search.sql")

GRAM = 3
# Each is one more list to walk through, and so many are seldom together by chance.
MOST_GRAMS = 32
TABLES = (
    "search_thread",
    "search_stretch",
    "search_text",
    "search_text_config",
    "search_text_data",
    "search_text_docsize",
    "search_text_idx",
)


def can_search() -> bool:
    """Whether this build of SQLite has what the index is made of."""
    return "ENABLE_FTS5" in apsw.compile_options


def rows(
    db: apsw.Connection, query: str, values: Sequence[Any] = (), /, **named: Any
) -> list[Row]:
    """All rows of a named query; never leaves a cursor open."""
    try:
        return db.execute(QUERIES[query], named or values).fetchall()
    except apsw.SQLError as error:  # the statements are right: a table must be wrong
        raise Corrupt("the search index", str(error)) from error


def exists(db: apsw.Connection) -> bool:
    """Whether there is an index, in this view of the file."""
    return rows(db, "count_tables") != [(0,)]


# --- reading --------------------------------------------------------------------------


def read_indexed(db: apsw.Connection, number: int) -> Indexed | None:
    """What the index holds of a thread."""
    with snapshot(db):
        return _indexed(db, number) if exists(db) else None


def _indexed(db: apsw.Connection, number: int) -> Indexed:
    found = rows(db, "indexed", thread=number)
    changed, form = found[0] if found else (-1, 0)
    stretches = (Stretch(*r) for r in rows(db, "stretches", thread=number))
    return Indexed(changed, form, tuple(stretches))


def read_outdated(db: apsw.Connection, query: Outdated) -> Page[Stale]:
    """The threads that are not indexed as they are."""
    wanted = {"kind": query.kind, "owner": query.owner, "agent": query.agent}
    with snapshot(db):
        if not exists(db):
            return _stale(rows(db, "unindexed", **wanted))
        found = rows(db, "outdated", form=query.form, **wanted)
        return _stale(found + rows(db, "gone"))


def read_scattered(db: apsw.Connection, query: Scattered) -> Page[Stale]:
    """The threads indexed in too many stretches."""
    with snapshot(db):
        if not exists(db):
            return Page(())
        found = rows(db, "scattered", stretch=query.stretch)
        return _stale(found + rows(db, "gone"))


def _stale(found: list[Row]) -> Page[Stale]:
    return Page(tuple(Stale(row[0], row[1]) for row in found))


def read_candidates(db: apsw.Connection, query: Candidates) -> Page[Candidate]:
    """The threads in which some texts may stand, where there is an index."""
    where: defaultdict[int, list[range]] = defaultdict(list)
    for thread, first, last in rows(db, "matching", grams=_grams(query.texts)):
        if thread is None:
            raise Corrupt("the search index", "it holds a text of no thread")
        where[thread].append(range(first, last + 1))
    found = rows(
        db,
        "candidates",
        matching=orjson.dumps([*where]).decode(),
        kind=query.kind,
        form=query.form,
        owner=query.owner,
        agent=query.agent,
        after=LATEST if query.after is None else query.after,
        limit=LATEST if query.limit is None else query.limit,
    )
    threads = [(row[0], CODEC.thread(row[1:])) for row in found]
    items = tuple(
        Candidate(thread, tuple(where[thread.number]) if is_indexed else None)
        for is_indexed, thread in threads
    )
    full = bool(items) and len(items) == query.limit
    return Page(items, items[-1].thread.changed if full else None)


def _grams(texts: Sequence[str]) -> str:
    """The trigrams of some texts as an FTS5 expression that asks for all of them."""
    found = dict.fromkeys(
        text[n : n + GRAM] for text in texts for n in range(len(text) - GRAM + 1)
    )
    chosen = [*found][:: len(found) // MOST_GRAMS + 1]
    quoted = (gram.replace('"', '""') for gram in chosen)
    return " AND ".join(f'"{gram}"' for gram in quoted)


# --- writing --------------------------------------------------------------------------


def write_index(db: apsw.Connection, updates: Sequence[Indexing]) -> None:
    """Bring the index of some threads up to date, in one transaction."""
    with transaction(db):
        if not exists(db):
            rows(db, "create")
        texts = [text for update in updates for text in _catalogued(db, update)]
        # All at once: any other statement in between makes FTS5 write out what it has
        # gathered so far, which is three times as slow.
        for numbered in texts:
            rows(db, "insert_text", numbered)


def _catalogued(db: apsw.Connection, update: Indexing) -> list[tuple[int, str]]:
    """Enter a thread's new stretches; returns their texts with their numbers."""
    # Another caller may have indexed the thread, or merged its stretches.
    if _indexed(db, update.number) != update.found:
        return []
    thread, becomes = update.number, update.becomes or Indexed()
    kept = len(becomes.stretches) - len(update.texts)
    _drop_stretches(db, thread, update.found.stretches[kept:])
    if update.becomes is None:
        rows(db, "drop_thread", thread=thread)
    else:
        state = {"changed": becomes.changed, "form": becomes.form}
        rows(db, "insert_thread", thread=thread, **state)
    new = becomes.stretches[kept:]
    numbers = [rows(db, "insert_stretch", (thread, *s))[0][0] for s in new]
    return list(zip(numbers, update.texts, strict=True))


def _drop_stretches(
    db: apsw.Connection, thread: int, stretches: Sequence[Stretch]
) -> None:
    if stretches:
        first = stretches[0].first
        rows(db, "drop_texts", thread=thread, first=first)
        rows(db, "drop_stretches", thread=thread, first=first)


def optimize(db: apsw.Connection) -> None:
    """Merge what was indexed bit by bit, and leave out what was removed."""
    if exists(db):
        rows(db, "optimize")


# --- damage ---------------------------------------------------------------------------

DAMAGED = "the search index is damaged; compact() drops it, and a search makes it anew"
UNUSED = "there are pages that nothing uses; compact() gives them back"


def explained(db: apsw.Connection, problems: list[str]) -> list[str]:
    """Problems of a file; those that are only about the index are named so."""
    if not problems:
        return []
    if is_damaged(db):
        return [DAMAGED, *problems]
    return [UNUSED if _UNUSED.fullmatch(line) else line for line in problems]


_UNUSED = re.compile(r"(\*\*\* in database main \*\*\*)?(\n?Page \d+: never used)+")


def refresh(db: apsw.Connection) -> None:
    """Make FTS5 see what others have changed, within a transaction."""
    if exists(db):
        rows(db, "refresh")


def is_damaged(db: apsw.Connection) -> bool:
    """Whether the index cannot be trusted."""
    try:
        with snapshot(db):
            return exists(db) and not _is_sound(db)
    except apsw.Error as error:
        if isinstance(translation(error, "the search index"), Corrupt):
            return True
        raise
    except Corrupt:
        return True


def _is_sound(db: apsw.Connection) -> bool:
    refresh(db)
    return (
        rows(db, "count_tables") == [(len(TABLES),)]
        and all(rows(db, "check", table=table) == [("ok",)] for table in TABLES)
        and not rows(db, "misplaced")
    )


def drop(db: apsw.Connection) -> None:
    """Remove the index; what is too damaged for that is only forgotten.

    To free the pages of a damaged table could free those of another: they are left to
    `compact`, which copies what is known.
    """
    try:
        with transaction(db):
            rows(db, "drop")
    except (apsw.Error, Corrupt):
        _forget(db)


def _forget(db: apsw.Connection) -> None:
    db.execute("pragma writable_schema = on")
    try:
        with transaction(db):
            rows(db, "forget")
            [(version,)] = rows(db, "schema_version")
            # So that every connection reads the schema again.
            db.execute(f"pragma schema_version = {version + 1}")
    finally:
        db.execute("pragma writable_schema = reset")
