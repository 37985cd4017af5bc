"""Taking over a family from another store, with the numbers it had there."""

from __future__ import annotations

import apsw

from holdfast._port import Admission, Adoption
from holdfast._values.records import Checkpoint, Move, ThreadRecord
from holdfast.backends.sqlite import _rows
from holdfast.backends.sqlite._statements import QUERIES
from holdfast.backends.sqlite._write import next_seq, row, rows
from holdfast.errors import Conflict


def adopt(db: apsw.Connection, adoption: Adoption) -> None:
    """Insert what is not there yet."""
    seqs = {checkpoint.id: checkpoint.seq for checkpoint in adoption.checkpoints}
    numbers = {t.id: t.number for t in adoption.threads if t.deleted_at is None}
    for segment in adoption.segments:
        row = _rows.segment_row(adoption.family, segment)
        db.execute(QUERIES["adopt_segment"], row)
    for thread in adoption.threads:
        _adopt_thread(db, thread)
    for checkpoint in adoption.checkpoints:
        _adopt_checkpoint(db, checkpoint, seqs)
    for entry in adoption.entries:
        number = numbers[entry.thread]
        rows(
            db,
            "insert_entry",
            seq=entry.seq,
            thread=number,
            checkpoint=entry.checkpoint,
            key=entry.key,
            value=entry.data,
            at=entry.recorded_at,
            checksum=_rows.entry_checksum(number, entry),
        )
    for move in adoption.moves:
        _adopt_move(db, move, numbers[move.thread], seqs)


def admit(db: apsw.Connection, admission: Admission) -> None:
    """Insert families with numbers behind all that are taken."""
    last_seq = next_seq(db) - 1
    [(last_number,)] = rows(db, "last_thread")
    for numbered, segments in admission.families():
        family = numbered.renumbered(
            lambda seq: last_seq + seq, lambda number: (last_number or 0) + number
        )
        for thread in family.threads:
            if thread.deleted_at is None and row(db, "live_thread", name=thread.id):
                raise thread_exists(thread.id)
        adopt(db, family)
        for segment in segments:
            values = _rows.segment_row(family.family, segment)
            db.execute(QUERIES["insert_segment"], values)


def thread_exists(name: str) -> Conflict:
    """A thread that is to come is there already."""
    text = f"thread {name!r} exists already; delete it, or import into another store"
    return Conflict(text, code="thread_exists", thread=name)


def _adopt_thread(db: apsw.Connection, thread: ThreadRecord) -> None:
    origin = thread.forked_from
    rows(
        db,
        "adopt_thread",
        number=thread.number,
        name=thread.id,
        family=thread.family,
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
    )
    if thread.deleted_at is not None:  # its last change was that it went
        last = Move(thread.changed, thread.id, "delete", None, None, thread.deleted_at)
        _adopt_move(db, last, thread.number, {})


def _adopt_checkpoint(db: apsw.Connection, c: Checkpoint, seqs: dict[str, int]) -> None:
    parent = seqs[c.parent] if c.parent is not None else None
    row = _rows.checkpoint_row(c, c.seq, c.family, c.thread_number, parent)
    db.execute(QUERIES["adopt_checkpoint"], row)


def _adopt_move(
    db: apsw.Connection, move: Move, thread: int, seqs: dict[str, int]
) -> None:
    rows(
        db,
        "adopt_move",
        seq=move.seq,
        thread=thread,
        kind=move.kind,
        source=seqs.get(move.source or ""),
        target=seqs.get(move.target or ""),
        at=move.moved_at,
    )
