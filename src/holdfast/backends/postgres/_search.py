"""The index for searching: pg_trgm, and which texts of which threads are in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

from holdfast._port import (
    Candidate,
    Candidates,
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
from holdfast.backends.postgres._rows import CODEC
from holdfast.backends.postgres._statements import Statements

# The number of patterns that the index looks up: it cannot look up an array.
ASKED = 4
# A text is frequent if it takes longer to sort all stretches that match than to look up
# the threads used last until there are as many matches as a page has. Measured: 50 µs
# for a stretch, 8 µs for a thread, 25 matches in a page. If a share of all stretches
# match, both take equally long where share * share * stretches is EVEN. Those of an
# owner or agent are not found by their last use; they are read instead, 100 µs each.
SAMPLE, EVEN, EVEN_FILTERED = 128, 4, 80
# So many matches are to be among the threads that are looked up.
ENOUGH = 25


# The tables with texts, or about them.
TABLES = ("search_thread", "search_stretch")


async def exists(db: Statements) -> bool:
    """True if there is an index."""
    return await db.row("exists") == (True,)


async def is_readable(db: Statements) -> bool:
    """True if there is an index that the role may read."""
    return await db.row("readable") == (True,)


async def _made(db: Statements) -> tuple[bool, bool]:
    """Two answers: the tables are there; their texts have an index."""
    [(tables, index)] = await db.rows("made")
    return tables, index


# --- reading --------------------------------------------------------------------------


async def _position(db: Statements, form: int) -> int:
    """The change up to which all threads are indexed in a form."""
    found = await db.row("position")
    return found[1] if found and found[0] == form else 0


async def read_outdated(db: Statements, query: Outdated, last: int) -> Page[Stale]:
    """The threads that are not indexed as they are, up to the ``last`` change.

    Between later changes others may still be committed: a number is taken before.
    """
    if not await is_readable(db):
        return Page((), 0)
    _, is_whole = await _made(db)
    position = await _position(db, query.form)
    after = position if query.after is None else query.after
    if after >= last and (is_whole or not last):
        return Page(())
    limit = LATEST if query.limit is None else query.limit
    about = {"form": query.form, "without": query.without, "limit": limit}
    found = await db.rows("outdated", after=after, up_to=last, **about)
    is_full = len(found) == limit
    gone = [] if position or is_full else await db.rows("gone")
    stale = await _stale(db, found, gone)
    return Page(stale, stale[-1].changed if is_full else last)


async def count_outdated(db: Statements, query: OutdatedCount) -> Page[int]:
    """The number of threads that are not indexed as they are."""
    if not await is_readable(db):
        return Page((0,))
    about = {"form": query.form, "without": query.without}
    after = await _position(db, query.form)
    [(count,)] = await db.rows("outdated_count", after=after, **about)
    return Page((count,))


async def read_scattered(db: Statements, query: Scattered) -> Page[Stale]:
    """The threads indexed in too many stretches."""
    if not await is_readable(db):
        return Page(())
    limit = LATEST if query.limit is None else query.limit
    about = {"stretch": query.stretch, "after": query.after or 0, "limit": limit}
    found = await db.rows("scattered", **about)
    is_full = len(found) == limit
    stale = await _stale(db, found, [] if is_full else await db.rows("gone"))
    return Page(stale, stale[-1].number if is_full else None)


async def _stale(
    db: Statements, found: list[Row], gone: list[Row]
) -> tuple[Stale, ...]:
    numbers = [row[NUMBER] for row in found] + [row[0] for row in gone]
    stretches = await _stretches(db, numbers)
    listed = (to_stale(CODEC, row, stretches) for row in found)
    return (*listed, *to_gone(gone, stretches))


async def _stretches(db: Statements, numbers: Sequence[int]) -> Stretches:
    return by_thread(await db.rows("stretches", threads=[*numbers]))


async def read_candidates(db: Statements, query: Candidates) -> Page[Candidate] | None:
    """The threads that may have some texts; ``None`` to read the last used instead."""
    patterns = [
        f"%{_escaped(text)}%" for text in sorted(query.texts, key=len, reverse=True)
    ]
    if query.quick:
        share, frequency = await _frequency(db, patterns)
        is_filtered = query.owner is not None or query.agent is not None
        if is_filtered and frequency >= EVEN_FILTERED:
            return None
        if frequency >= EVEN and not is_filtered:
            return await _looked_up(db, query, patterns, share)
    values = _values(query) | _asked(patterns)
    position = await _position(db, query.form)
    found = await db.rows("candidates", position=position, **values)
    return _page(query, found, None)


async def _frequency(db: Statements, patterns: Sequence[str]) -> tuple[float, float]:
    """The share of stretches that match, and the value to compare with EVEN."""
    about = {"patterns": patterns, "sample": SAMPLE}
    [(matches, of, threads)] = await db.rows("frequency", **about)
    share = matches / max(of, 1)
    return share, share * share * threads


async def _looked_up(
    db: Statements, query: Candidates, patterns: Sequence[str], share: float
) -> Page[Candidate]:
    """The threads that match among so many used last that a page may be filled."""
    values = _values(query)
    reach = ceil(ENOUGH / share)
    about = {"form": query.form, "after": values["after"], "reach": reach}
    [(down_to, count, position)] = await db.rows("reach", **about)
    about = {"patterns": patterns, "down_to": down_to, "position": position}
    found = await db.rows("looked_up", **about, **values)
    return _page(query, found, down_to if count == reach else None)


def _page(query: Candidates, found: list[Row], rest: int | None) -> Page[Candidate]:
    items = tuple(map(_candidate, found))
    is_full = bool(items) and len(items) == query.limit
    return Page(items, items[-1].thread.changed if is_full else rest)


def _values(query: Candidates) -> dict[str, Any]:
    """The conditions on threads, as parameters of the statements."""
    return {
        "form": query.form,
        "kind": query.kind,
        "without": query.without,
        "owner": query.owner,
        "agent": query.agent,
        "after": LATEST if query.after is None else query.after,
        "limit": query.limit,
    }


def _candidate(row: Row) -> Candidate:
    is_indexed, firsts, lasts, *columns = row
    thread = CODEC.thread(tuple(columns))
    if not is_indexed:
        return Candidate(thread)
    pairs = zip(firsts, lasts, strict=True)
    return Candidate(thread, tuple(range(first, last + 1) for first, last in pairs))


def _asked(patterns: Sequence[str]) -> dict[str, Any]:
    """The first patterns, for which the index is asked, and those that remain."""
    asked = [*patterns, None, None, None][:ASKED]
    numbered = {f"pattern_{n}": pattern for n, pattern in enumerate(asked)}
    return {**numbered, "remaining": patterns[ASKED:]}


def _escaped(text: str) -> str:
    """A text with the characters escaped that patterns give a meaning."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


# --- writing --------------------------------------------------------------------------


async def create(db: Statements) -> bool:
    """Make missing tables; returns whether their texts have an index."""
    made, is_whole = await _made(db)
    if made:
        return is_whole
    await db.rows("lock")
    await _extension_schema(db)
    await db.rows("create_state_table")
    await db.rows("create_thread_table")
    await db.rows("create_thread_index")
    await db.rows("create_stretch_table")
    await db.rows("distribute")
    return False


async def create_text_index(db: Statements, schema: str) -> None:
    """Make the index over the texts, if it is missing.

    To be called when the table is filled, which is faster with no index. No save waits
    for it, only other searches that write to the table. If a search is killed here, or
    the schema is restored into a database without the extension, the next search makes
    the index.
    """
    await db.rows("lock")
    home = await _extension_schema(db)
    await db.run(
        f"create index if not exists search_stretch_text on {schema}.search_stretch"
        f" using gin (text {home}.gin_trgm_ops)"
    )


async def _extension_schema(db: Statements) -> str:
    """The schema of the extension, which is made if it is missing."""
    found = await db.row("extension_schema")
    if found is None:
        await db.rows("create_extension")
        found = await db.row("extension_schema")
        assert found is not None
    home: str = found[0]
    return home


async def write(db: Statements, batch: IndexBatch) -> None:
    """Bring the index of some threads up to date."""
    [(form,)] = await db.rows("lock_position")
    if form != batch.form:
        await db.rows("set_position", form=batch.form, position=0)
    await _write_threads(db, batch.threads)
    if batch.up_to is not None:
        await _advance(db, batch, batch.up_to)


async def _write_threads(db: Statements, updates: Sequence[Indexing]) -> None:
    numbers = [update.number for update in updates]
    families: dict[int, int] = dict(await db.rows("families_of", threads=numbers))
    known = await _known(db, numbers)
    changed: dict[int, Indexed] = {}
    stretches: list[tuple[int, Stretch, str]] = []
    for update in updates:
        thread, becomes = update.number, update.becomes or Indexed()
        # Another caller may have indexed the thread, or merged its stretches; or it is
        # gone, and so is what was indexed of it.
        if known.get(thread, Indexed()) != update.found or thread not in families:
            continue
        known[thread] = becomes
        kept = len(becomes.stretches) - len(update.texts)
        place = {"family": families[thread], "thread": thread}
        for stretch in update.found.stretches[kept : kept + 1]:
            await db.rows("drop_stretches", first=stretch.first, **place)
        if update.becomes is None:
            await db.rows("drop_thread", **place)
            continue
        changed[thread] = becomes
        new = zip(becomes.stretches[kept:], update.texts, strict=True)
        stretches += ((thread, stretch, text) for stretch, text in new)
    await _mark(db, families, changed)
    await _insert(db, families, stretches)


async def _known(db: Statements, numbers: list[int]) -> dict[int, Indexed]:
    found = await db.rows("indexed", threads=numbers)
    stretches = await _stretches(db, [thread for thread, _, _ in found])
    return {n: Indexed(was, form, stretches.get(n, ())) for n, was, form in found}


async def _mark(
    db: Statements, families: Mapping[int, int], changed: Mapping[int, Indexed]
) -> None:
    if changed:
        await db.rows(
            "mark_threads",
            families=[families[thread] for thread in changed],
            threads=[*changed],
            changed=[indexed.changed for indexed in changed.values()],
            forms=[indexed.form for indexed in changed.values()],
        )


async def _insert(
    db: Statements,
    families: Mapping[int, int],
    stretches: Sequence[tuple[int, Stretch, str]],
) -> None:
    if stretches:
        await db.rows(
            "insert_stretches",
            families=[families[thread] for thread, _, _ in stretches],
            threads=[thread for thread, _, _ in stretches],
            firsts=[stretch.first for _, stretch, _ in stretches],
            lasts=[stretch.last for _, stretch, _ in stretches],
            sizes=[stretch.size for _, stretch, _ in stretches],
            hashes=[stretch.hash for _, stretch, _ in stretches],
            texts=[text for _, _, text in stretches],
        )


async def _advance(db: Statements, batch: IndexBatch, up_to: int) -> None:
    """Count the index as complete up to a change, if it is."""
    after = await _position(db, batch.form)
    about = {"form": batch.form, "without": batch.without}
    if up_to <= after:
        return
    if await db.row("is_outdated", after=after, up_to=up_to, **about) == (False,):
        await db.rows("set_position", form=batch.form, position=up_to)


async def drop_gone(db: Statements) -> None:
    """Remove deleted threads from the index."""
    await db.rows("lock_position")
    await db.rows("drop_gone_stretches")
    await db.rows("drop_gone_threads")


async def reset(db: Statements, before: int = LATEST) -> None:
    """Compare all threads with the index in the next search.

    To be called after a change that leaves the threads' last changes as they were. An
    index that is complete up to the change ``before`` is left as it is.
    """
    if await exists(db):
        await db.rows("reset_position", before=before)
