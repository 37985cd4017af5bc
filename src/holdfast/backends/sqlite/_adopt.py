"""Taking over a family from another store, with the numbers it had there."""

from __future__ import annotations

import apsw

from holdfast._port import Admission, Adoption
from holdfast.backends._sql.adoption import record_statements, thread_statements
from holdfast.backends._sql.rows import thread_row
from holdfast.backends.sqlite import _rows
from holdfast.backends.sqlite._search import reset_search
from holdfast.backends.sqlite._statements import QUERIES, row, rows
from holdfast.backends.sqlite._write import next_seq
from holdfast.errors import Conflict

LAST_NUMBER = 0xFFFF_FFFF


def adopt(db: apsw.Connection, adoption: Adoption) -> None:
    """Insert what is not there yet, with the numbers it had."""
    if adoption.anew:
        _drop(db, adoption.family)
    _insert(db, adoption)
    # What is new may have changed before what is indexed already.
    reset_search(db)


def _drop(db: apsw.Connection, family: int) -> None:
    """Remove all that an earlier copy left of a family, its threads last."""
    first = family << 32
    rows(db, "delete_segments", first=first, last=first | LAST_NUMBER)
    rows(db, "delete_family_checkpoints", family=family)
    rows(db, "drop_family_entries", family=family)
    rows(db, "drop_family_moves", family=family)
    rows(db, "drop_family_threads", family=family)


def _insert(db: apsw.Connection, adoption: Adoption) -> None:
    for segment in adoption.segments:
        values = _rows.segment_row(adoption.family, segment)
        db.execute(QUERIES["adopt_segment"], values)
    for thread in adoption.threads:
        for name, named in thread_statements(thread_row(thread)):
            rows(db, name, **named)
    for name, named in record_statements(_rows.CODEC, adoption):
        rows(db, name, **named)
    for thread in adoption.threads:
        rows(db, "seal_thread", number=thread.number)


def admit(db: apsw.Connection, admission: Admission) -> None:
    """Insert families with numbers behind all that are taken."""
    last_seq = next_seq(db.cursor()) - 1
    [(last_number,)] = rows(db, "last_thread")
    for numbered, segments in admission.families():
        family = numbered.renumbered(
            lambda seq: last_seq + seq, lambda number: (last_number or 0) + number
        )
        for thread in family.threads:
            if thread.deleted_at is None and row(db, "live_thread", name=thread.id):
                raise thread_exists(thread.id)
        _insert(db, family)
        for segment in segments:
            values = _rows.segment_row(family.family, segment)
            db.execute(QUERIES["insert_segment"], values)


def thread_exists(name: str) -> Conflict:
    """A thread of this name is in the store already."""
    text = f"thread {name!r} exists already; delete it, or import into another store"
    return Conflict(text, code="thread_exists", thread=name)
