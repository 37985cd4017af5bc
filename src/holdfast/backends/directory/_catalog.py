"""The index's knowledge of the files it was made from."""

from __future__ import annotations

from typing import Any, NamedTuple

import apsw

from holdfast.backends.directory._files import FileStamp
from holdfast.backends.directory._lines import FIRST
from holdfast.backends.sqlite import FORMAT
from holdfast.backends.sqlite._statements import load_queries
from holdfast.errors import FormatMismatch

QUERIES = load_queries("index.sql", __name__.rpartition(".")[0])

# An index with another version or other tables is made again from the files.
VERSION = 1000 * 2 + FORMAT

Row = tuple[Any, ...]


def rows(db: apsw.Connection, query: str, /, **values: Any) -> list[Row]:
    """All rows of a named query; never leaves a cursor open."""
    return db.execute(QUERIES[query], values).fetchall()


class IndexedFile(NamedTuple):
    """A file of lines as the index last took it in.

    The first ``taken`` bytes are in the index; the checksum of their last line is
    ``tail``. ``is_certain`` says that the names of all its threads are known, although
    it has a problem.
    """

    name: str
    family: int | None
    stamp: FileStamp
    taken: int = 0
    tail: str = FIRST
    problem: str | None = None
    is_certain: bool = True


class FolderState(NamedTuple):
    """The version of the index, the folder's last known change, and the epoch.

    The epoch counts how often rows were replaced because a file was.
    """

    version: int = VERSION
    changed_at: int = 0
    epoch: int = 0


class FileProblem(NamedTuple):
    """A problem of a file that is not as it was written."""

    name: str
    family: int | None
    what: str
    is_certain: bool


def set_up(db: apsw.Connection, path: str) -> None:
    """Make what is missing, and note every row that this connection changes."""
    db.execute(QUERIES["create"])
    db.execute(QUERIES["watch"])
    if folder_state(db).version != VERSION:
        raise FormatMismatch(f"{path} was made by another version")


def folder_state(db: apsw.Connection) -> FolderState:
    """The folder as the index last took it in."""
    found = rows(db, "folder")
    return FolderState(*found[0]) if found else FolderState()


def set_folder(db: apsw.Connection, state: FolderState) -> None:
    """Note the state of the folder."""
    rows(db, "set_folder", **state._asdict())


class FamilyState(NamedTuple):
    """The folder, and the file of one family, as the index last took them in."""

    changed_at: int
    epoch: int
    has_problems: bool
    name: str | None
    stamp: FileStamp


def family_state(db: apsw.Connection, what: str | int) -> FamilyState:
    """The index's knowledge of a thread's family, or of a family."""
    query = "state_of_thread" if isinstance(what, str) else "state_of_family"
    [(changed_at, epoch, has_problems, name, *stamp)] = rows(db, query, what=what)
    return FamilyState(changed_at, epoch, bool(has_problems), name, FileStamp(*stamp))


def all_files(db: apsw.Connection) -> dict[str, IndexedFile]:
    """Every file the index knows, by name."""
    return {row[0]: _file(row) for row in rows(db, "files")}


def file_of(db: apsw.Connection, family: int) -> IndexedFile | None:
    """The file of a family."""
    found = rows(db, "file_of", family=family)
    return _file(found[0]) if found else None


def set_file(db: apsw.Connection, file: IndexedFile) -> None:
    """Note a file as it was taken in."""
    name, family, stamp, *rest = file
    db.execute(QUERIES["set_file"], (name, family, *stamp, *rest))


def forget_file(db: apsw.Connection, name: str) -> None:
    """Forget a file that is no longer there."""
    rows(db, "forget_file", name=name)


def problems(db: apsw.Connection) -> list[FileProblem]:
    """The files that are not as they were written."""
    return [
        FileProblem(name, family, what, bool(is_certain))
        for name, family, what, is_certain in rows(db, "problems")
    ]


def family_of(db: apsw.Connection, thread: str) -> int | None:
    """The family of a thread, or of the last one that had the name."""
    found: list[Row] = db.execute(QUERIES["family_of"], (thread,)).fetchall()
    return found[0][0] if found else None


def _file(row: Row) -> IndexedFile:
    name, family, size, modified, inode, taken, tail, problem, is_certain = row
    stamp = FileStamp(size, modified, inode)
    return IndexedFile(name, family, stamp, taken, tail, problem, bool(is_certain))
