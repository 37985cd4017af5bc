"""Taking over a family from another store, with the numbers it had there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter

from msgspec.structs import asdict, replace
from psycopg import errors

from holdfast._port import Admission, Adoption
from holdfast._values.records import Segment
from holdfast.backends._sql.adoption import record_statements, thread_statements
from holdfast.backends._sql.rows import ThreadRow, thread_row
from holdfast.backends.postgres import _search
from holdfast.backends.postgres._outcome import Trace
from holdfast.backends.postgres._rows import CODEC, segment_values
from holdfast.backends.postgres._statements import Statements
from holdfast.backends.postgres._write import Durable
from holdfast.errors import Conflict

# Segments are sent in parts of about so many bytes.
PART = 4 << 20


async def adopt(db: Statements, adoption: Adoption) -> None:
    """Insert the records that are missing, with the numbers they had."""
    if adoption.anew:
        await _drop(db, adoption.family)
    await _insert_segments(db, adoption.family, adoption.segments)
    for thread in adoption.threads:
        await _insert_thread(db, thread_row(thread))
    for name, values in record_statements(CODEC, adoption):
        await db.rows(name, **values)
    await _pass_numbers(db, adoption)
    # An adopted change may be older than the position up to which threads are indexed.
    await _search.reset(db)


async def _drop(db: Statements, family: int) -> None:
    """Remove the remains of an earlier copy of a family."""
    # Threads first: every transaction locks the rows of a family in this order.
    threads = await db.rows("drop_threads", family=family)
    for name, number in threads:
        await db.rows("drop_name", name=name, number=number)
    for drop in ("drop_checkpoints", "drop_segments", "drop_entries", "drop_moves"):
        await db.rows(drop, family=family)


async def _insert_thread(db: Statements, row: ThreadRow) -> None:
    await db.rows("adopt_directory", **asdict(row))
    for name, values in thread_statements(row):
        await db.rows(name, **values)


async def _insert_segments(
    db: Statements, family: int, segments: Sequence[Segment]
) -> None:
    if segments:
        await db.rows("adopt_segments", family=family, **segment_values(segments))


async def admit(db: Statements, admission: Admission, durable: Durable) -> Trace | None:
    """Insert families with new numbers; returns a row that proves the commit."""
    trace: Trace | None = None
    await db.rows("enter", durable=durable)
    taken = await db.rows("take_seqs", count=admission.changes)
    seqs = sorted(seq for (seq,) in taken)
    numbers = await _admit_threads(db, admission, seqs)
    for archived, segments in admission.families():
        family = archived.renumbered(lambda seq: seqs[seq - 1], numbers.__getitem__)
        for name, values in record_statements(CODEC, family):
            await db.rows(name, **values)
        await _admit_segments(db, family.family, segments)
        for saved in family.checkpoints[:1]:
            trace = Trace(family.family, saved.seq, saved.saved_at)
    return trace


async def _admit_threads(
    db: Statements, admission: Admission, seqs: Sequence[int]
) -> dict[int, int]:
    """Insert the threads of all families; returns their new numbers by their old ones.

    Each number is drawn just before it is used: a role that is bound to a scope may
    insert no other than the one that its session drew last. A family has the number of
    its first thread.
    """
    families = (family for family, _ in admission.families())
    rows = [thread_row(thread) for family in families for thread in family.threads]
    numbers: dict[int, int] = {}
    for row in sorted(rows, key=attrgetter("number")):
        [(drawn,)] = await db.rows("take_number")
        numbers[row.number] = drawn
        renumbered = replace(
            row,
            family=numbers[row.family],
            number=drawn,
            head=None if row.head is None else seqs[row.head - 1],
            changed=seqs[row.changed - 1],
        )
        try:
            await _insert_thread(db, renumbered)
        except errors.UniqueViolation as error:
            text = f"thread {row.name!r} exists already; import into another store"
            raise Conflict(text, code="thread_exists", thread=row.name) from error
    return numbers


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
