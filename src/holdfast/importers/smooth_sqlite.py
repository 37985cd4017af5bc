"""Reads the SQLite file of smooth: one table with a row for each checkpoint.

A row has the fields of a file of `smooth`. Times are whole seconds; within a second
rows are ordered as they were written.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import apsw
import msgspec

from holdfast.importers._fields import Fields, Moment, rendered
from holdfast.importers._files import checked_text, parse, shown
from holdfast.importers._reader import Damaged, Reading
from holdfast.importers._sqlite import columns_of, has_columns, opened, selected
from holdfast.importers.smooth import (
    SmoothSave,
    lightened,
    put_in_order,
    taken_apart,
)

_TABLE = "checkpoints"


def recognises(path: str) -> bool:
    """True if a file is a SQLite database with smooth's table."""
    return has_columns(path, _TABLE, {"agent_id", "conversation", "iteration"})


def read(path: str) -> Reading:
    """All rows of the table; the file stays open until the reading is closed."""
    reading, found = Reading(), list[SmoothSave]()
    with reading.attempt(shown(path)):
        db = reading.resources.enter_context(opened(path))
        columns = columns_of(db, _TABLE)
        if not columns:
            raise Damaged(f"has no table {_TABLE!r}")
        for (rowid,) in selected(db, "select rowid from checkpoints"):
            with reading.attempt(shown(path), f"row {rowid}"):
                again = partial(_found, db, columns, rowid, shown(path))
                found.append(lightened(again(), again))
    put_in_order(reading, found, "as their rows were written")
    return reading


def _found(
    db: apsw.Connection, columns: list[str], rowid: int, path: str
) -> SmoothSave:
    record = _record(db, columns, rowid)
    at = Fields(record).seconds("created_at")
    found = taken_apart(record, path, Moment(at * 1000, rendered(at)))
    return msgspec.structs.replace(found, order=(at, rowid))


def _record(db: apsw.Connection, columns: list[str], rowid: int) -> dict[str, Any]:
    """A row as the object that a file of `smooth` would hold."""
    rows = selected(db, "select * from checkpoints where rowid = ?", rowid)
    if not rows:
        raise Damaged("cannot be found by its number")
    row = dict(zip(columns, rows[0], strict=True))
    row["conversation"] = parse(_text(row.get("conversation")))
    row["metadata"] = parse(_text(row.get("metadata") or "{}"))
    return {n: {"hex": v.hex()} if isinstance(v, bytes) else v for n, v in row.items()}


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return checked_text(value.decode(errors="surrogateescape"))
    if isinstance(value, str):
        return value
    raise Damaged("has a conversation or metadata that is not text")
