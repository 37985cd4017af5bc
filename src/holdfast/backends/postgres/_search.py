"""The index for searching: pg_trgm, and which texts of which threads are in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
from holdfast.backends.postgres._rows import CODEC
from holdfast.backends.postgres._statements import Statements, checked_schema

# How many patterns the statement gives to the index, which cannot look up an array.
ASKED = 4


async def exists(db: Statements) -> bool:
    """Whether there is an index."""
    return await db.row("exists") == (True,)


# --- reading --------------------------------------------------------------------------


async def read_indexed(db: Statements, number: int) -> Indexed | None:
    """What the index holds of a thread."""
    if not await exists(db):
        return None
    return await _indexed(db, await db.row("indexed", thread=number), number)


async def _indexed(db: Statements, found: Row | None, number: int) -> Indexed:
    if found is None:
        return Indexed()
    family, changed, form = found
    stretches = await db.rows("stretches", family=family, thread=number)
    return Indexed(changed, form, tuple(Stretch(*row) for row in stretches))


async def read_outdated(db: Statements, query: Outdated) -> Page[Stale]:
    """The threads that are not indexed as they are."""
    wanted = {"kind": query.kind, "owner": query.owner, "agent": query.agent}
    if not await exists(db):
        return _stale(await db.rows("unindexed", **wanted))
    found = await db.rows("outdated", form=query.form, **wanted)
    return _stale(found + await db.rows("gone"))


async def read_scattered(db: Statements, query: Scattered) -> Page[Stale]:
    """The threads indexed in too many stretches."""
    if not await exists(db):
        return Page(())
    found = await db.rows("scattered", stretch=query.stretch)
    return _stale(found + await db.rows("gone"))


def _stale(found: list[Row]) -> Page[Stale]:
    return Page(tuple(Stale(number, name) for number, name in found))


async def read_candidates(db: Statements, query: Candidates) -> Page[Candidate]:
    """The threads in which some texts may stand, where there is an index."""
    found = await db.rows(
        "candidates",
        **_patterns(query.texts),
        form=query.form,
        kind=query.kind,
        owner=query.owner,
        agent=query.agent,
        after=LATEST if query.after is None else query.after,
        limit=query.limit,
    )
    items = tuple(map(_candidate, found))
    full = bool(items) and len(items) == query.limit
    return Page(items, items[-1].thread.changed if full else None)


def _candidate(row: Row) -> Candidate:
    is_indexed, firsts, lasts, *columns = row
    thread = CODEC.thread(tuple(columns))
    if not is_indexed:
        return Candidate(thread)
    pairs = zip(firsts, lasts, strict=True)
    return Candidate(thread, tuple(range(first, last + 1) for first, last in pairs))


def _patterns(texts: Sequence[str]) -> dict[str, Any]:
    """The longest texts, for which the index is asked, and those that remain."""
    patterns = [f"%{_escaped(text)}%" for text in sorted(texts, key=len, reverse=True)]
    asked = [*patterns, None, None, None][:ASKED]
    numbered = {f"pattern_{n}": pattern for n, pattern in enumerate(asked)}
    return {**numbered, "remaining": patterns[ASKED:]}


def _escaped(text: str) -> str:
    """A text that means itself in a pattern."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


# --- writing --------------------------------------------------------------------------


async def create(db: Statements, schema: str) -> None:
    """Make the tables, if they are missing."""
    if await exists(db):
        return
    await db.rows("lock")
    await db.rows("create_extension")
    await db.rows("create_thread_table")
    await db.rows("create_thread_index")
    await db.rows("create_stretch_table")
    await db.rows("distribute")
    [(home,)] = await db.rows("extension_schema")
    checked_schema(home)
    await db.run(
        f"create index if not exists search_stretch_text on {schema}.search_stretch"
        f" using gin (text {home}.gin_trgm_ops)"
    )


async def write(db: Statements, update: Indexing) -> None:
    """Bring the index of a thread up to date, unless another caller did."""
    becomes = update.becomes or Indexed()
    home = await db.row("family_of", thread=update.number)
    if home is None:
        return  # the thread is gone, and so is what was indexed of it
    place = {"family": home[0], "thread": update.number}
    await db.rows("enter_thread", **place)
    locked = await db.row("lock_indexed", **place)
    if await _indexed(db, locked, update.number) != update.found:
        return
    kept = len(becomes.stretches) - len(update.texts)
    for stretch in update.found.stretches[kept : kept + 1]:
        await db.rows("drop_stretches", first=stretch.first, **place)
    if update.becomes is None:
        await db.rows("drop_thread", **place)
        return
    state = {"changed": becomes.changed, "form": becomes.form}
    await db.rows("mark_thread", **place, **state)
    pairs = zip(becomes.stretches[kept:], update.texts, strict=True)
    for stretch, text in pairs:
        values: dict[str, Any] = stretch._asdict()
        await db.rows("insert_stretch", text=text, **place, **values)
