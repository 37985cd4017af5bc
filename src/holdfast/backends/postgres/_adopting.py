"""Taking over a family from another store, with the numbers it had there."""

from __future__ import annotations

from holdfast._backend import Adoption
from holdfast._records import Checkpoint, Move, ThreadRecord
from holdfast.backends.postgres import _rows
from holdfast.backends.postgres._session import Statements


async def adopt(db: Statements, adoption: Adoption) -> None:
    """Insert what is not there yet."""
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
    await _pass_numbers(db, adoption)


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
