"""Reading a SQLite file whose first page is so damaged that it cannot be opened.

First without the checksums of pages, since rows have their own. If SQLite still cannot
read the file, its rows are searched for page by page and put into a new file. This is
for salvage only: what is read may be incomplete, and nothing can be written.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from typing import BinaryIO, NamedTuple

import apsw

from holdfast._port import run
from holdfast.backends.sqlite import SqliteBackend
from holdfast.backends.sqlite._connection import (
    connect,
    file_size,
    page_checksums,
    plain_vfs,
    translated,
)
from holdfast.backends.sqlite._raw_pages import Carver, Row, Value, layouts
from holdfast.backends.sqlite._statements import rows
from holdfast.errors import HoldfastError

_SALVAGED = ("thread", "checkpoint", "segment", "journal", "move")
_TYPES = {"INTEGER": int, "TEXT": str, "BLOB": bytes}


class Column(NamedTuple):
    """A column as the schema declares it."""

    name: str
    type: type[int | str | bytes]
    is_required: bool

    def takes(self, value: Value) -> bool:
        """True if the value can be in the column."""
        if value is None:
            return not self.is_required
        return type(value) is self.type


class Table(NamedTuple):
    """A table of ours; rows without a name are recognised by its columns."""

    name: str
    columns: Sequence[Column]

    def fits(self, values: tuple[Value, ...]) -> bool:
        """True if the row can be one of the table.

        SQLite keeps an integer primary key, our first column, outside of the row. A
        row may be shorter than the table, if columns were added after it was written.
        """
        missing = (None,) * (len(self.columns) - len(values))
        if len(values) > len(self.columns) or values[0] is not None:
            return False
        pairs = zip(self.columns[1:], (*values, *missing)[1:], strict=True)
        return all(column.takes(value) for column, value in pairs)

    def insert(self, db: apsw.Connection, row: Row) -> None:
        """Insert a row, unless a newer version of it is there."""
        names = [column.name for column in self.columns[: len(row.values)]]
        values = dict(zip(names, (row.id, *row.values[1:]), strict=True))
        if "changed" in values and self._has_newer(db, names[0], values):
            return
        marks = ", ".join(f":{name}" for name in names)
        # The names are those of the schema.
        sql = (
            f"insert or replace into {self.name} ({', '.join(names)}) values ({marks})"  # noqa: S608
        )
        with contextlib.suppress(apsw.ConstraintError, apsw.MismatchError):
            db.execute(sql, values)

    def _has_newer(
        self, db: apsw.Connection, key: str, values: dict[str, Value]
    ) -> bool:
        # ``changed`` grows whenever a row is written again.
        sql = f"select 1 from {self.name} where {key} = :{key} and changed >= :changed"  # noqa: S608
        return bool(db.execute(sql, values).fetchall())


def _table(db: apsw.Connection, table: str) -> Table:
    """A table as the schema of this version declares it."""
    found = db.execute(f"pragma table_info({table})")
    columns = [
        Column(name, _TYPES[kind], bool(full) and default is None)
        for _, name, kind, full, default, _ in found
    ]
    return Table(table, columns)


class Wreck(SqliteBackend):
    """The file as SQLite sees it without checksums, whatever its header says."""

    def __init__(self, path: str, folder: str | None = None) -> None:
        self._folder = folder
        super().__init__(path, read_only=True, vfs=plain_vfs())

    def _open_for_reading(self) -> None:
        with self._reading() as db, translated(self.path):
            rows(db, "last_thread")
            rows(db, "last_checkpoint")
            rows(db, "count_strays")  # refused if the format is an older one

    async def close(self) -> None:
        await super().close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def find_wreck(path: str, *, is_cut_short: bool) -> SqliteBackend | None:
    """The readable rest of a file, ``None`` if it does not look like a store.

    SQLite reads a log up to the first damage. A log that is cut short is searched
    behind
    the damage, too.
    """
    if not os.path.isfile(path):
        return None
    if is_cut_short:
        if file_size(f"{path}-wal") <= 0:
            return None
    else:
        with contextlib.suppress(HoldfastError):
            return Wreck(path)
    folder = tempfile.mkdtemp()
    try:
        copy = os.path.join(folder, "found.db")
        if _carve(path, copy):
            return Wreck(copy, folder)
    except BaseException:
        shutil.rmtree(folder)
        raise
    shutil.rmtree(folder)
    return None


def _carve(path: str, copy: str) -> bool:
    """Put the rows of a file into a new one; true if there were checkpoints."""
    backend = SqliteBackend(copy, durability="normal")
    run(backend.close())  # it has made the tables
    db = connect(copy, read_only=False, busy_timeout=0, vfs=page_checksums())
    # SQLite has not opened the damaged file in this process, so that closing it here
    # drops none of its locks.
    try:
        with open(path, "rb") as file, contextlib.ExitStack() as stack, db:
            log: BinaryIO | None = None
            with contextlib.suppress(OSError):
                log = stack.enter_context(open(f"{path}-wal", "rb"))
            tables = [_table(db, name) for name in _SALVAGED]
            carvers = [Carver(file, log, layout) for layout in layouts(file)]
            _fill(db, tables, max(carvers, key=lambda c: _count(c, tables)).rows())
        return bool(db.execute("select count(*) from checkpoint").fetchall()[0][0])
    finally:
        db.close()


def _count(carver: Carver, tables: Sequence[Table]) -> int:
    """The number of rows that may be ours; few are recognised in a wrong page size."""
    return sum(_table_of(row, tables) is not None for row in carver.rows())


def _table_of(row: Row, tables: Sequence[Table]) -> Table | None:
    return next((table for table in tables if table.fits(row.values)), None)


def _fill(db: apsw.Connection, tables: Sequence[Table], found: Iterator[Row]) -> None:
    for row in found:
        table = _table_of(row, tables)
        if table is not None:
            table.insert(db, row)
        elif row.id == 0 and _is_setting(row.values):
            name, value = row.values[:2]
            rows(db, "insert_setting", name=name, value=value)


def _is_setting(values: tuple[Value, ...]) -> bool:
    return [type(value) for value in values[:2]] == [str, bytes] and len(values) < 4  # noqa: PLR2004
