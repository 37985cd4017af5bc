"""Page checksums that do not fit: damage, or pages that a plain SQLite has written.

A plain SQLite that looks at a store after a crash copies the log into the file. It does
not know the checksum at the end of a page, which then is that of an older content. So a
wrong checksum alone does not prove damage. Here the content decides: every row has a
checksum of its own, SQLite compares the indexes with the tables, and what refers to
other rows must find them. If all of it fits, only the checksums of pages are wrong, and
they are written again. The rows of the search index have none: it is dropped if one of
its pages is among them.
"""

from __future__ import annotations

import contextlib
import struct
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from importlib import resources
from typing import TYPE_CHECKING, Self, TypeVar

import apsw

from holdfast._port import Place, Portion, run
from holdfast._port.removal import merged
from holdfast._values.records import Run
from holdfast._values.runs import divided
from holdfast.backends.sqlite._connection import (
    APPLICATION_ID,
    CHECKSUM_BYTES,
    FORMAT,
    MEMORY,
    MIGRATIONS,
    connect,
    ignore_page_checksums,
    leave_log,
    plain_vfs,
    reserved_bytes,
    snapshot,
)
from holdfast.backends.sqlite._inspection import SqliteInspection
from holdfast.backends.sqlite._search import drop
from holdfast.backends.sqlite._statements import rows
from holdfast.errors import Corrupt

if TYPE_CHECKING:  # an import cycle
    from holdfast.backends.sqlite._database import Database

R = TypeVar("R")

CHUNK = 1000
_PRAGMAS = {
    "application_id": APPLICATION_ID,
    "user_version": FORMAT,
    "encoding": "UTF-8",
    "auto_vacuum": 0,
}
_SCHEMA = "select type, name, tbl_name, sql from sqlite_schema"


def repair_pages(database: Database, path: str, *, read_only: bool) -> bool:
    """Write checksums of pages again if only these are wrong; False if more is.

    A store that is only read ignores the checksums from then on instead.
    """
    try:
        places = _repair(database, path, read_only=read_only)
    except apsw.BusyError:
        raise
    except apsw.Error:
        return False
    if places:
        _tell(path, len(places), read_only=read_only)
    return places is not None


def _repair(database: Database, path: str, *, read_only: bool) -> list[int] | None:
    """The offsets of repaired pages, ``None`` if the file is damaged."""
    with (
        contextlib.closing(database.connect(read_only=read_only)) as db,
        PageFile(path, read_only=read_only) as file,
    ):
        # The log stays as it is, whatever is wrong with it.
        leave_log(db)
        ignore_page_checksums(db)
        size = _page_size(db)
        places = file.bad_pages(size)
        if not places:
            return places  # another thread or process has done it
        searched = {*places} & _search_pages(db, size)
        # If it is all about the search index, its own repair comes later.
        if len(searched) == len(places) or find_damage(db) is not None:
            return None
        if read_only:
            database.trust_pages()
            return places
        if searched:
            # First: killed in between, the next repair drops it.
            drop(db)
        file.renew(places, size)
    return places


def _page_size(db: apsw.Connection) -> int:
    # The first statement makes SQLite read the header.
    for name in ("page_count", "page_size"):
        [(found,)] = db.execute(f"pragma {name}").fetchall()
    assert isinstance(found, int)
    return found


def _search_pages(db: apsw.Connection, size: int) -> set[int]:
    """The offsets of the pages of the search index."""
    sql = "select pageno from dbstat where name glob '*search_*'"
    return {(number - 1) * size for (number,) in db.execute(sql)}


def _tell(path: str, count: int, *, read_only: bool) -> None:
    done = "ignored until it is opened for writing" if read_only else "written anew"
    text = (
        f"wrong page checksums in {path} ({count}), as after a write by a program other"
        f" than Holdfast: all rows and indexes fit, and the checksums were {done}"
    )
    warnings.warn(text, RuntimeWarning, stacklevel=2)


# --- the checksums of pages -----------------------------------------------------------


class PageFile:
    """The pages of a database file, read and written past SQLite's cache.

    SQLite's own VFS opens it, so that closing it drops no lock of this process.
    """

    def __init__(self, path: str, *, read_only: bool) -> None:
        mode = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE
        flags = [mode | apsw.SQLITE_OPEN_MAIN_DB, 0]
        self._file = apsw.VFSFile(plain_vfs(), path, flags)
        self._checker = apsw.Connection(MEMORY)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._checker.close()
        self._file.xClose()

    def bad_pages(self, size: int) -> list[int]:
        """The offsets of the pages whose checksum does not fit."""
        whole = self._file.xFileSize() // size * size
        return [at for at in range(0, whole, size) if not self._fits(at, size)]

    def _fits(self, at: int, size: int) -> bool:
        page = self._file.xRead(size, at)
        sql = "select verify_checksum(?)"  # a function that the checksum VFS adds
        return self._checker.execute(sql, (page,)).fetchall() == [(1,)]

    def renew(self, places: Iterable[int], size: int) -> None:
        """Write the checksums of some pages, and nothing else.

        If another process writes a page meanwhile, only its checksum is wrong again.
        """
        for at in places:
            found = page_checksum(self._file.xRead(size, at))
            self._file.xWrite(found, at + size - CHECKSUM_BYTES)
        self._file.xSync(apsw.SQLITE_SYNC_NORMAL)


def page_checksum(page: bytes) -> bytes:
    """The last eight bytes of a page.

    Two sums of 32 bits over the words of the page, each of which adds the other.
    """
    words = struct.unpack(f"<{len(page) // 4 - 2}I", page[:-CHECKSUM_BYTES])
    one = two = 0
    for even, odd in zip(words[::2], words[1::2], strict=True):
        one = one + even + two & 0xFFFF_FFFF
        two = two + odd + one & 0xFFFF_FFFF
    return struct.pack("<II", one, two)


# --- the content ----------------------------------------------------------------------


def find_damage(db: apsw.Connection) -> str | None:
    """The first thing that is not as Holdfast wrote it, on any page that is in use.

    ``db`` must not check the checksums of pages.
    """
    try:
        with snapshot(db):
            return _header(db) or _structure(db) or _rows(db) or run(_records(db))
    except apsw.BusyError:
        raise
    except (apsw.Error, UnicodeDecodeError) as error:
        return str(error)


def _header(db: apsw.Connection) -> str | None:
    for name, value in _PRAGMAS.items():
        if db.execute(f"pragma {name}").fetchall() != [(value,)]:
            return f"its header has another {name}"
    if reserved_bytes(db) != CHECKSUM_BYTES:
        return "its header says that its pages have no checksums"
    if not _schema() <= {*db.execute(_SCHEMA)}:
        return "its tables are not those of a store"
    return None


def _schema() -> set[tuple[object, ...]]:
    """The tables, indexes, triggers and views of a new store."""
    db = connect(MEMORY, read_only=False, busy_timeout=0, vfs=None)
    folder = resources.files(__name__.rpartition(".")[0])
    for script in MIGRATIONS:
        db.execute(folder.joinpath(script).read_text("utf-8"))
    found = {*db.execute(_SCHEMA)}
    db.close()
    return found


def _structure(db: apsw.Connection) -> str | None:
    found = db.execute("pragma integrity_check").fetchall()
    return None if found == [("ok",)] else str(found[0][0])


def _rows(db: apsw.Connection) -> str | None:
    for table, key, _ in rows(db, "wrong_rows"):
        return f"{table} {key} is not as it was written"
    for table, key in rows(db, "orphans"):
        return f"the thread or parent of {table} {key!r} is missing"
    return None


async def _records(db: apsw.Connection) -> str | None:
    inspection = SqliteInspection(db)
    try:
        async for _ in _portions(inspection.threads):
            pass
        async for _ in _portions(inspection.entries):
            pass
        used: dict[int, list[Run]] = {}
        async for checkpoints in _portions(inspection.checkpoints):
            for c in checkpoints:
                runs = used.setdefault(c.family, [])
                runs += c.runs
                if len(runs) > CHUNK:
                    used[c.family] = merged(runs)
        return await _segments(inspection, used)
    except Corrupt as error:
        return error.what


async def _segments(
    inspection: SqliteInspection, used: dict[int, list[Run]]
) -> str | None:
    count = 0
    for family, runs in used.items():
        for part in divided(merged(runs), CHUNK):
            [found] = await inspection.segments([(family, part)])
            if None in found:
                return f"segments of family {family} are lost"
            count += len(found)
    stored = sum(await inspection.count_segments(list(used)))
    if count != stored + await inspection.count_strays():
        return "there are segments that no checkpoint uses"
    return None


async def _portions(
    read: Callable[[Place], Awaitable[Portion[R]]],
) -> AsyncIterator[tuple[R, ...]]:
    after: Place | None = Place()
    while after is not None:
        portion = await read(after)
        for damage in portion.damage:
            raise Corrupt(damage)
        yield portion.records
        after = portion.end
