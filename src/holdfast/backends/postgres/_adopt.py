"""Taking over a family from another store, with the numbers it had there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import asdict
from psycopg import errors

from holdfast._port import Admission, Adoption
from holdfast._values.records import Segment
from holdfast.backends._sql.adoption import adoption_statements
from holdfast.backends._sql.rows import thread_row
from holdfast.backends.postgres import _search
from holdfast.backends.postgres._outcome import Trace
from holdfast.backends.postgres._rows import CODEC, segment_values
from holdfast.backends.postgres._statements import Statements
from holdfast.backends.postgres._write import Durable
from holdfast.errors import Conflict

# Segments are sent in parts of about so many bytes.
PART = 4 << 20


async def adopt(db: Statements, adoption: Adoption) -> None:
    """Insert what is not there yet, with the numbers it had."""
    if adoption.anew:
        await _drop(db, adoption.family)
    await _insert(db, adoption)
    await _pass_numbers(db, adoption)
    # What is new may have changed before what is indexed already.
    await _search.reset(db)


async def _drop(db: Statements, family: int) -> None:
    """Remove all that an earlier copy left of a family."""
    # The threads first, as all locks of a family are taken.
    threads = await db.rows("drop_threads", family=family)
    for name, number in threads:
        await db.rows("drop_name", name=name, number=number)
    for drop in ("drop_checkpoints", "drop_segments", "drop_entries", "drop_moves"):
        await db.rows(drop, family=family)


async def _insert(db: Statements, adoption: Adoption) -> None:
    await _insert_segments(db, adoption.family, adoption.segments)
    for thread in adoption.threads:
        await db.rows("adopt_directory", **asdict(thread_row(thread)))
    for name, values in adoption_statements(CODEC, adoption):
        await db.rows(name, **values)


async def _insert_segments(
    db: Statements, family: int, segments: Sequence[Segment]
) -> None:
    if segments:
        await db.rows("adopt_segments", family=family, **segment_values(segments))


async def admit(db: Statements, admission: Admission, durable: Durable) -> Trace | None:
    """Insert families with new numbers; gives what shows that they were committed."""
    trace: Trace | None = None
    await db.rows("enter", durable=durable)
    seqs = await _taken(db, "take_seqs", admission.changes)
    numbers = await _taken(db, "take_numbers", admission.threads)
    for numbered, segments in admission.families():
        family = numbered.renumbered(
            lambda seq: seqs[seq - 1], lambda number: numbers[number - 1]
        )
        await _admit_family(db, family)
        await _admit_segments(db, family.family, segments)
        for saved in family.checkpoints[:1]:
            trace = Trace(family.family, saved.seq, saved.saved_at)
    return trace


async def _taken(db: Statements, query: str, count: int) -> list[int]:
    return sorted(number for (number,) in await db.rows(query, count=count))


async def _admit_family(db: Statements, family: Adoption) -> None:
    try:
        await _insert(db, family)
    except errors.UniqueViolation as error:
        names = [thread.id for thread in family.threads if thread.deleted_at is None]
        text = f"one of the threads {names!r} exists already; import into another store"
        raise Conflict(text, code="thread_exists", thread=names[0]) from error


async def _admit_segments(
    db: Statements, family: int, segments: Iterable[Segment]
) -> None:
    part: list[Segment] = []
    size = 0
    for segment in segments:
        part.append(segment)
        size += len(segment.data)
        if size >= PART:
            await _insert_segments(db, family, part)
            part, size = [], 0
    await _insert_segments(db, family, part)


async def _pass_numbers(db: Statements, adoption: Adoption) -> None:
    taken = [
        *(thread.changed for thread in adoption.threads),
        *(checkpoint.seq for checkpoint in adoption.checkpoints),
        *(entry.seq for entry in adoption.entries),
        *(move.seq for move in adoption.moves),
    ]
    if taken:
        highest = max((thread.number for thread in adoption.threads), default=1)
        await db.rows("pass_numbers", seq=max(taken), number=highest)
