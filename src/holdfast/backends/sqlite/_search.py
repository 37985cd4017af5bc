"""The index for searching: FTS5, and which texts of which threads are in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import apsw
import orjson

from holdfast._port import (
    IndexBatch,
    Indexed,
    Indexing,
    Outdated,
    OutdatedCount,
    Scattered,
    Stale,
    Stretch,
)
from holdfast._values.records import Page
from holdfast.backends._sql.reads import LATEST
from holdfast.backends._sql.rows import Row
from holdfast.backends._sql.stale import (
    NUMBER,
    Stretches,
    by_thread,
    to_gone,
    to_stale,
)
from holdfast.backends.sqlite._connection import snapshot, transaction, translation
from holdfast.backends.sqlite._rows import CODEC
from holdfast.backends.sqlite._statements import load_queries, row
from holdfast.errors import Corrupt

QUERIES = load_queries("search.sql")

# The setting of an index that is being filled, see `create` in ``search.sql``.
FILLING = 64
# The number of pages that are written in one step of merging. SQLite counts fewer
# changes than this if there was nothing left to merge.
STEP, SOME_WORK = 256, 2
# The state of a thread that is not in the index.
NOTHING = Indexed()
TABLES = (
    "search_state",
    "search_thread",
    "search_stretch",
    "search_text",
    "search_text_config",
    "search_text_data",
    "search_text_docsize",
    "search_text_idx",
)


def rows(
    db: apsw.Connection, query: str, values: Sequence[Any] = (), /, **named: Any
) -> list[Row]:
    """All rows of a named query; never leaves a cursor open."""
    try:
        return db.execute(QUERIES[query], named or values).fetchall()
    except apsw.SQLError as error:  # the statements are right: a table must be wrong
        raise Corrupt("the search index", str(error)) from error


def exists(db: apsw.Connection) -> bool:
    """True if there is an index, in this view of the file."""
    return rows(db, "count_tables") != [(0,)]


# --- reading --------------------------------------------------------------------------


def position(db: apsw.Connection, form: int) -> int:
    """The change up to which all threads are indexed in a form."""
    found = rows(db, "position")
    return found[0][1] if found and found[0][0] == form else 0


def _last_change(db: apsw.Connection) -> int:
    following = row(db, "next_seq")
    assert following is not None
    return int(following[0]) - 1


def read_outdated(db: apsw.Connection, query: Outdated) -> Page[Stale]:
    """The threads that are not indexed as they are."""
    with snapshot(db):
        if not exists(db):
            return Page((), 0)
        complete = position(db, query.form)
        after = complete if query.after is None else query.after
        last = _last_change(db)
        if after >= last and not (last and _is_filling(db)):
            return Page(())
        limit = LATEST if query.limit is None else query.limit
        about = {"form": query.form, "without": query.without, "limit": limit}
        found = rows(db, "outdated", after=after, up_to=last, **about)
        gone = rows(db, "gone") if complete == 0 and len(found) < limit else []
        stale = _stale(db, found, gone)
        return Page(stale, stale[-1].changed if len(found) == limit else last)


def count_outdated(db: apsw.Connection, query: OutdatedCount) -> Page[int]:
    """The number of threads that the index does not have as they are now."""
    with snapshot(db):
        if not exists(db):
            return Page((0,))
        about = {"form": query.form, "without": query.without}
        after = position(db, query.form)
        return Page(rows(db, "outdated_count", after=after, **about)[0])


def read_scattered(db: apsw.Connection, query: Scattered) -> Page[Stale]:
    """The threads indexed in too many stretches."""
    with snapshot(db):
        if not exists(db):
            return Page(())
        after, limit = query.after or 0, query.limit or LATEST
        about = {"stretch": query.stretch, "after": after, "limit": limit}
        found = rows(db, "scattered", **about)
        is_full = len(found) == limit
        stale = _stale(db, found, [] if is_full else rows(db, "gone"))
        return Page(stale, stale[-1].number if is_full else None)


def _stale(db: apsw.Connection, found: list[Row], gone: list[Row]) -> tuple[Stale, ...]:
    numbers = [r[NUMBER] for r in found] + [r[0] for r in gone]
    stretches = _stretches(db, numbers)
    listed = (to_stale(CODEC, r, stretches) for r in found)
    return (*listed, *to_gone(gone, stretches))


def _stretches(db: apsw.Connection, numbers: Sequence[int]) -> Stretches:
    return by_thread(rows(db, "stretches", threads=as_json(numbers)))


def as_json(values: Sequence[int | str]) -> str:
    """Numbers or texts as one parameter."""
    return orjson.dumps(list(values)).decode()


# --- writing --------------------------------------------------------------------------


def write_index(
    db: apsw.Connection, batch: IndexBatch, before_texts: Callable[[], None]
) -> bool:
    """Bring the index of some threads up to date, in one transaction.

    ``before_texts`` is called when only FTS5 has still to work. True if `merge` is to
    be called now, until it has done everything.
    """
    with transaction(db):
        if not exists(db):
            rows(db, "create")
        if [form for form, _ in rows(db, "position")] != [batch.form]:
            rows(db, "set_position", form=batch.form, position=0)
        insert_texts = _write_threads(db, batch.threads)
        if batch.up_to is not None:
            _advance(db, batch, batch.up_to)
        is_filled = batch.is_last and _is_filling(db)
        before_texts()
        insert_texts()
        return is_filled


def _is_filling(db: apsw.Connection) -> bool:
    """True if the parts that filled the index have still to be merged."""
    return rows(db, "merging") == [(FILLING,)]


def merge(db: apsw.Connection, *, begin: bool) -> bool:
    """Merge some of what filling the index has left; true if that was all.

    Each call is a short transaction, so that others can write in between. The next
    search continues a merge that a kill interrupted.
    """
    with transaction(db):
        before = db.total_changes()
        rows(db, "merge", pages=-STEP if begin else STEP)
        is_done = db.total_changes() - before < SOME_WORK
        if is_done:
            rows(db, "settle")
        return is_done


def _write_threads(
    db: apsw.Connection, updates: Sequence[Indexing]
) -> Callable[[], object]:
    """Write all but the texts; returns what inserts them."""
    known = _known(db, [update.number for update in updates])
    [(last,)] = rows(db, "last_stretch")
    threads: list[Row] = []
    stretches: list[Row] = []
    texts: list[str] = []
    first = last + 1
    for update in updates:
        thread, becomes = update.number, update.becomes or NOTHING
        # Another caller may have indexed the thread, or merged its stretches.
        if known.get(thread, NOTHING) != update.found:
            continue
        known[thread] = becomes
        kept = len(becomes.stretches) - len(update.texts)
        _drop_stretches(db, thread, update.found.stretches[kept:])
        if update.becomes is None:
            rows(db, "drop_thread", thread=thread)
        else:
            threads.append((thread, becomes.changed, becomes.form))
        new = enumerate(becomes.stretches[kept:], last + 1)
        stretches += ((number, thread, *stretch) for number, stretch in new)
        texts += update.texts
        last += len(update.texts)
    _insert(db, "insert_thread", threads)
    _insert(db, "insert_stretch", stretches)
    # All at once: any other statement in between makes FTS5 write out what it has
    # gathered so far, which is three times as slow.
    listed = as_json(texts)
    return lambda: rows(db, "insert_texts", first=first, texts=listed)


def _known(db: apsw.Connection, numbers: Sequence[int]) -> dict[int, Indexed]:
    stretches = _stretches(db, numbers)
    known = {n: Indexed(stretches=found) for n, found in stretches.items()}
    for number, was, form in rows(db, "indexed", threads=as_json(numbers)):
        known[number] = Indexed(was, form, stretches.get(number, ()))
    return known


def _insert(db: apsw.Connection, query: str, values: Sequence[Row]) -> None:
    try:
        db.executemany(QUERIES[query], values)
    except apsw.SQLError as error:
        raise Corrupt("the search index", str(error)) from error


def _drop_stretches(
    db: apsw.Connection, thread: int, stretches: Sequence[Stretch]
) -> None:
    if stretches:
        first = stretches[0].first
        rows(db, "drop_texts", thread=thread, first=first)
        rows(db, "drop_stretches", thread=thread, first=first)


def _advance(db: apsw.Connection, batch: IndexBatch, up_to: int) -> None:
    """Count the index as complete up to a change, if it is."""
    after = position(db, batch.form)
    about = {"form": batch.form, "without": batch.without}
    if up_to <= after:
        return
    if rows(db, "is_outdated", after=after, up_to=up_to, **about) == [(0,)]:
        rows(db, "set_position", form=batch.form, position=up_to)


def reset_search(db: apsw.Connection, before: int = LATEST) -> None:
    """Compare all threads with the index in the next search.

    To be called after a change that does not show in their last changes; ``before``
    spares an index that is complete up to this change. A damaged index is left to the
    next search, which finds the damage too.
    """
    try:
        if exists(db):
            rows(db, "reset_position", before=before)
    except Corrupt:
        return
    except apsw.Error as error:
        if not isinstance(translation(error, "the search index"), Corrupt):
            raise


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
    """True if the index cannot be trusted."""
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
