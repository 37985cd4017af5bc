"""Reading a SQLite file whose first page is so damaged that it cannot be opened.

First without the checksums of pages, since rows have their own; if SQLite still cannot
read it, its rows are searched for page by page and put into a new file. For salvage
only: what is read this way need not be complete, and nothing can be written.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from typing import BinaryIO

import apsw

from holdfast._port import run
from holdfast.backends.sqlite import SqliteBackend
from holdfast.backends.sqlite._connection import page_checksums, translated
from holdfast.backends.sqlite._raw_pages import Carver, Row, Value, layouts
from holdfast.backends.sqlite._statements import rows
from holdfast.errors import HoldfastError

# The others begin with the one that the operating system has.
_OTHERS = {"cksmvfs", "memdb"}
# Our tables by the number of their columns, which is how rows are told apart.
_TABLES = {14: "thread", 17: "checkpoint", 4: "segment", 7: "journal", 6: "move"}
_CHANGED = 8  # the column of a thread that grows whenever it is used


class Wreck(SqliteBackend):
    """The file as SQLite sees it without checksums, whatever its header says."""

    def __init__(self, path: str, folder: str | None = None) -> None:
        self._folder = folder
        plain = next(name for name in apsw.vfs_names() if name not in _OTHERS)
        super().__init__(path, read_only=True, vfs=plain)

    def _open_for_reading(self) -> None:
        with self._reading() as db, translated(self.path):
            rows(db, "last_thread")
            rows(db, "last_checkpoint")

    async def close(self) -> None:
        await super().close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def find_wreck(path: str) -> SqliteBackend | None:
    """What can be read of a file, ``None`` if it does not look like one of ours."""
    if not os.path.isfile(path):
        return None
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
    """Put the rows of a file into a new one; whether there were checkpoints."""
    # Nobody in this process has it open, since it cannot be opened: no lock is lost.
    with open(path, "rb") as file, contextlib.ExitStack() as stack:
        log: BinaryIO | None = None
        with contextlib.suppress(OSError):
            log = stack.enter_context(open(f"{path}-wal", "rb"))
        carvers = [Carver(file, log, layout) for layout in layouts(file)]
        return _fill(copy, max(carvers, key=_count).rows())


def _count(carver: Carver) -> int:
    """How many rows may be ours: with pages of a wrong size, few are made out."""
    return sum(row.values[0] is None and _is_ours(row) for row in carver.rows())


def _is_ours(row: Row) -> bool:
    return len(row.values) in _TABLES


def _fill(copy: str, found: Iterator[Row]) -> bool:
    backend = SqliteBackend(copy, durability="normal")
    run(backend.close())  # it has made the tables
    db = apsw.Connection(copy, vfs=page_checksums())
    try:
        with db:
            for row in found:
                _insert(db, row)
        return bool(db.execute("select count(*) from checkpoint").fetchall()[0][0])
    finally:
        db.close()


def _insert(db: apsw.Connection, row: Row) -> None:
    values = row.values
    table = _TABLES.get(len(values))
    if table is None or values[0] is not None:
        if row.id == 0 and _is_setting(values):
            db.execute("insert or ignore into setting values (?, ?)", values)
        return
    if table == "thread" and not _is_newer(db, row):
        return
    marks = ", ".join("?" * len(values))
    with contextlib.suppress(apsw.ConstraintError, apsw.MismatchError):
        # Strict tables take nothing that cannot be one of theirs.
        db.execute(
            f"insert or replace into {table} values ({marks})",  # noqa: S608 - ours
            (row.id, *values[1:]),
        )


def _is_setting(values: tuple[Value, ...]) -> bool:
    return [type(value) for value in values] == [str, bytes]


def _is_newer(db: apsw.Connection, row: Row) -> bool:
    """Whether a thread is not there yet, or as it was before."""
    newer = "select 1 from thread where number = ? and changed >= ?"
    return not db.execute(newer, (row.id, row.values[_CHANGED])).fetchall()
