"""Reads the SQLite file of smooth: one table with a row for each checkpoint.

Rows mean what the files of `smooth` mean. Their times are whole seconds; within a
second the order in which the rows were written counts.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Generator
from contextlib import closing, contextmanager
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import apsw
import msgspec

from holdfast.importers._fields import Fields, Moment, rendered
from holdfast.importers._files import (
    LARGEST,
    checked_text,
    parse,
    read_head,
    shown,
)
from holdfast.importers._reading import Damaged, Reading
from holdfast.importers.smooth import Found, lightened, put_in_order, taken_apart

_MAGIC = b"SQLite format 3\0"
# What a crash leaves beside the file: it holds the newest rows, or how to undo them.
_BESIDE = ("-wal", "-journal")


def recognises(path: str) -> bool:
    """Whether a file is a SQLite database with smooth's table."""
    if not os.path.isfile(path) or not read_head(path).startswith(_MAGIC):
        return False
    try:
        with _opened(path) as db:
            return {"agent_id", "conversation", "iteration"} <= set(_columns(db))
    except (Damaged, OSError):
        return False


def read(path: str) -> Reading:
    """All rows of the table; they are read again until the reading is closed."""
    reading, found = Reading(), list[Found]()
    with reading.attempt(shown(path)):
        db = reading.resources.enter_context(_opened(path))
        columns = _columns(db)
        for rowid in _rowids(db):
            with reading.attempt(shown(path), f"row {rowid}"):
                again = partial(_found, db, columns, rowid, shown(path))
                found.append(lightened(again(), again))
    put_in_order(reading, found, "as their rows were written")
    return reading


def _found(db: apsw.Connection, columns: list[str], rowid: int, path: str) -> Found:
    record = _record(db, columns, rowid)
    at = Fields(record).seconds("created_at")
    found = taken_apart(record, path, Moment(at * 1000, rendered(at)))
    return msgspec.structs.replace(found, order=(at, rowid))


def _record(db: apsw.Connection, columns: list[str], rowid: int) -> dict[str, Any]:
    """A row as the object that it would be in a file."""
    rows = _selected(db, "select * from checkpoints where rowid = ?", rowid)
    if not rows:
        raise Damaged("cannot be found by its number")
    row = dict(zip(columns, rows[0], strict=True))
    row["conversation"] = parse(_text(row.get("conversation")))
    row["metadata"] = parse(_text(row.get("metadata") or "{}"))
    return {name: _plain(value) for name, value in row.items()}


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return checked_text(value.decode(errors="surrogateescape"))
    if isinstance(value, str):
        return value
    raise Damaged("has a conversation or metadata that is not text")


def _plain(value: object) -> object:
    return {"hex": value.hex()} if isinstance(value, bytes) else value


def _rowids(db: apsw.Connection) -> list[int]:
    return [row[0] for row in _selected(db, "select rowid from checkpoints")]


def _columns(db: apsw.Connection) -> list[str]:
    table = "select 1 from sqlite_schema where name = 'checkpoints' and type = 'table'"
    if not _selected(db, table):
        raise Damaged("has no table 'checkpoints'")
    query = "select name from pragma_table_info('checkpoints')"
    return [str(name) for (name,) in _selected(db, query)]


def _selected(db: apsw.Connection, query: str, *values: int) -> list[tuple[Any, ...]]:
    try:
        return db.execute(query, values).fetchall()
    except (apsw.Error, UnicodeDecodeError) as error:
        raise Damaged(f"is damaged: {error}") from None


@contextmanager
def _opened(path: str) -> Generator[apsw.Connection]:
    """A connection that leaves the file, and what stands beside it, as they are."""
    if not os.path.isfile(path):
        raise Damaged("is not a file")
    if not any(_has_content(path + ending) for ending in _BESIDE):
        with closing(_connected(path, "mode=ro&immutable=1")) as db:
            yield db
        return
    # Reading these would write to them: even a read-only connection keeps an index.
    with TemporaryDirectory(prefix="holdfast-") as folder:
        copy = os.path.join(folder, "copy.db")
        for ending in ("", *_BESIDE):
            if os.path.exists(path + ending):
                shutil.copyfile(path + ending, copy + ending)
        with closing(_connected(copy, "mode=rw")) as db:
            yield db


def _has_content(path: str) -> bool:
    try:
        about = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(about.st_mode) and about.st_size > 0


def _connected(path: str, mode: str) -> apsw.Connection:
    flags = apsw.SQLITE_OPEN_READWRITE if "rw" in mode else apsw.SQLITE_OPEN_READONLY
    flags |= apsw.SQLITE_OPEN_URI
    try:
        db = apsw.Connection(f"file:{quote(os.path.abspath(path))}?{mode}", flags=flags)
    except apsw.Error as error:
        raise Damaged(f"cannot be opened: {error}") from None
    # The schema is a stranger's: it must not run anything.
    db.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    db.limit(apsw.SQLITE_LIMIT_LENGTH, min(LARGEST, (1 << 31) - 1))
    return db
