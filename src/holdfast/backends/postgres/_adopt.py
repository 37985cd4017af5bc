"""Taking over a family from another store, with the numbers it had there."""

from __future__ import annotations

from collections.abc import Iterable

from psycopg import errors

from holdfast._port import Admission, Adoption
from holdfast._values.records import Checkpoint, Move, Segment, ThreadRecord
from holdfast.backends.postgres import _rows
from holdfast.backends.postgres._outcome import Trace
from holdfast.backends.postgres._session import Statements
from holdfast.backends.postgres._write import Durable
from holdfast.errors import Conflict

# Segments are sent in parts of about so many bytes.
PART = 4 << 20


async def adopt(db: Statements, adoption: Adoption) -> None:
    """Insert what is not there yet, with the numbers it had."""
    await _insert(db, adoption)
    await _pass_numbers(db, adoption)


async def _insert(db: Statements, adoption: Adoption) -> None:
    family = adoption.family
    seqs = {checkpoint.id: checkpoint.seq for checkpoint in adoption.checkpoints}
    numbers = {t.id: t.number for t in adoption.threads if t.deleted_at is None}
    if adoption.segments:
        values = _rows.segment_values(adoption.segments)
        await db.rows("adopt_segments", family=family, **values)
    for thread in adoption.threads:
        await _adopt_thread(db, thread)
    for checkpoint in adoption.checkpoints:
        await _adopt_checkpoint(db, checkpoint, seqs)
    for entry in adoption.entries:
        await db.rows(
            "insert_entry",
            family=family,
            thread=numbers[entry.thread],
            checkpoint=entry.checkpoint,
            key=entry.key,
            seq=entry.seq,
            value=entry.data,
            at=entry.recorded_at,
            checksum=_rows.entry_checksum(entry),
        )
    for move in adoption.moves:
        place = {"family": family, "thread": numbers[move.thread]}
        await _adopt_move(db, move, place, seqs)


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
            await _insert(db, Adoption(family=family, segments=tuple(part)))
            part, size = [], 0
    if part:
        await _insert(db, Adoption(family=family, segments=tuple(part)))


async def _adopt_thread(db: Statements, thread: ThreadRecord) -> None:
    origin = thread.forked_from
    place = {"name": thread.id, "number": thread.number, "family": thread.family}
    await db.rows("adopt_directory", deleted_at=thread.deleted_at, **place)
    await db.rows(
        "adopt_thread",
        kind=thread.kind,
        owner=thread.owner,
        agent=thread.agent,
        metadata=thread.encoded_metadata,
        head=thread.head.seq if thread.head else None,
        changed=thread.changed,
        created_at=thread.created_at,
        updated_at=thread.updated_at,
        forked_thread=origin.thread if origin else None,
        forked_checkpoint=origin.checkpoint if origin else None,
        deleted_at=thread.deleted_at,
        **place,
    )
    if thread.deleted_at is not None:  # its last change was that it went
        last = Move(thread.changed, thread.id, "delete", None, None, thread.deleted_at)
        at = {"family": thread.family, "thread": thread.number}
        await _adopt_move(db, last, at, {})


async def _adopt_checkpoint(
    db: Statements, c: Checkpoint, seqs: dict[str, int]
) -> None:
    parent = seqs[c.parent] if c.parent is not None else None
    await db.rows(
        "adopt_checkpoint",
        family=c.family,
        seq=c.seq,
        thread=c.thread_number,
        thread_name=c.thread,
        parent=parent,
        **_rows.checkpoint_values(c, parent),
    )


async def _adopt_move(
    db: Statements, move: Move, place: dict[str, int], seqs: dict[str, int]
) -> None:
    await db.rows(
        "adopt_move",
        seq=move.seq,
        kind=move.kind,
        source=seqs.get(move.source or ""),
        target=seqs.get(move.target or ""),
        at=move.moved_at,
        **place,
    )


async def _pass_numbers(db: Statements, adoption: Adoption) -> None:
    taken = [
        *(thread.changed for thread in adoption.threads),
        *(checkpoint.seq for checkpoint in adoption.checkpoints),
        *(entry.seq for entry in adoption.entries),
        *(move.seq for move in adoption.moves),
    ]
    if taken:
        highest = max(thread.number for thread in adoption.threads)
        await db.rows("pass_numbers", seq=max(taken), number=highest)
