"""Reads a foreign SQLite file without changing it or running code from it."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Generator
from contextlib import closing, contextmanager
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import apsw

from holdfast.importers._files import LARGEST, read_head
from holdfast.importers._reader import Damaged

_MAGIC = b"SQLite format 3\0"
# A crash can leave these beside the file, with rows to add or changes to undo.
_BESIDE = ("-wal", "-journal")
_ATTEMPTS = 3


def is_database(path: str) -> bool:
    """True if a file begins as SQLite's files do; never raises."""
    return os.path.isfile(path) and read_head(path).startswith(_MAGIC)


def has_columns(path: str, table: str, names: set[str]) -> bool:
    """True if a file is a SQLite database with such a table; never raises."""
    if not is_database(path):
        return False
    try:
        with opened(path) as db:
            return names <= set(columns_of(db, table))
    except (Damaged, OSError):
        return False


def columns_of(db: apsw.Connection, table: str) -> list[str]:
    """The names of a table's columns, none if there is no such table."""
    query = (
        "select c.name from sqlite_schema s, pragma_table_info(s.name) c"
        " where s.name = ? and s.type = 'table' order by c.cid"
    )
    return [str(name) for (name,) in selected(db, query, table)]


def selected(
    db: apsw.Connection, query: str, *values: str | int
) -> list[tuple[Any, ...]]:
    """The rows of a query."""
    try:
        return db.execute(query, values).fetchall()
    except (apsw.Error, UnicodeDecodeError) as error:
        raise Damaged(f"is damaged: {error}") from None


@contextmanager
def opened(path: str) -> Generator[apsw.Connection]:
    """A connection that changes neither the file nor those beside it."""
    if not os.path.isfile(path):
        raise Damaged("is not a file")
    if not any(_has_content(path + ending) for ending in _BESIDE):
        with closing(_connected(path, "mode=ro&immutable=1")) as db:
            yield db
        return
    # Even a read-only connection would write to these (the index of the log): copy.
    with TemporaryDirectory(prefix="holdfast-") as folder:
        copy = _copied(path, os.path.join(folder, "copy.db"))
        with closing(_connected(copy, "mode=rw")) as db:
            yield db


def _copied(path: str, copy: str) -> str:
    """A copy of a file and those beside it, all as of one moment."""
    for _ in range(_ATTEMPTS):
        before = _stamps(path)
        for ending in before:
            shutil.copyfile(path + ending, copy + ending)
        if _stamps(path) == before:
            return copy
    raise Damaged("is being written to; stop its program, or import a backup of it")


def _stamps(path: str) -> dict[str, tuple[int, int]]:
    """Time of change and size of each file that exists, by its ending."""
    found: dict[str, tuple[int, int]] = {}
    for ending in ("", *_BESIDE):
        if os.path.exists(path + ending):
            about = os.stat(path + ending)
            found[ending] = about.st_mtime_ns, about.st_size
    return found


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
    # The schema is not ours and must not run code.
    db.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    db.limit(apsw.SQLITE_LIMIT_LENGTH, min(LARGEST, (1 << 31) - 1))
    return db
