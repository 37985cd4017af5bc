"""What the index knows about the files it was made from."""

from __future__ import annotations

from typing import Any, NamedTuple

import apsw

from holdfast.backends.directory._files import Seen
from holdfast.backends.directory._lines import FIRST
from holdfast.backends.sqlite import FORMAT
from holdfast.backends.sqlite._statements import load_queries
from holdfast.errors import FormatMismatch

QUERIES = load_queries("index.sql", __name__.rpartition(".")[0])

# Together with the format of its tables; an index that was made otherwise is made anew.
VERSION = 1000 * 1 + FORMAT

Row = tuple[Any, ...]


def rows(db: apsw.Connection, query: str, /, **values: Any) -> list[Row]:
    """All rows of a named query; never leaves a cursor open."""
    return db.execute(QUERIES[query], values).fetchall()


class File(NamedTuple):
    """A file of lines as the index took it in."""

    name: str
    family: int | None
    seen: Seen
    taken: int = 0
    tail: str = FIRST
    problem: str | None = None
    is_certain: bool = True


class FolderState(NamedTuple):
    """When the folder was last seen to have changed, how often the index was."""

    version: int = VERSION
    changed_at: int = 0
    epoch: int = 0


class Problem(NamedTuple):
    """A file that is not as it was written."""

    name: str
    family: int | None
    what: str
    is_certain: bool


def set_up(db: apsw.Connection, path: str) -> None:
    """Make what is missing, and watch everything that this connection changes."""
    db.execute(QUERIES["create"])
    db.execute(QUERIES["watch"])
    if folder_state(db).version != VERSION:
        raise FormatMismatch(f"{path} was made by another version")


def folder_state(db: apsw.Connection) -> FolderState:
    """How the index last saw the folder."""
    found = rows(db, "folder")
    return FolderState(*found[0]) if found else FolderState()


def set_folder(db: apsw.Connection, state: FolderState) -> None:
    """Remember how the folder was seen."""
    rows(db, "set_folder", **state._asdict())


class Sight(NamedTuple):
    """The folder, and the file of one family, as the index last saw them."""

    changed_at: int
    epoch: int
    has_problems: bool
    name: str | None
    seen: Seen


def sight(db: apsw.Connection, what: str | int) -> Sight:
    """What the index knows about a thread's family, or about a family."""
    query = "sight_of_thread" if isinstance(what, str) else "sight_of_family"
    [(changed_at, epoch, has_problems, name, *seen)] = rows(db, query, what=what)
    return Sight(changed_at, epoch, bool(has_problems), name, Seen(*seen))


def all_files(db: apsw.Connection) -> dict[str, File]:
    """Every file the index knows, by name."""
    return {row[0]: _file(row) for row in rows(db, "files")}


def file_of(db: apsw.Connection, family: int) -> File | None:
    """The file of a family."""
    found = rows(db, "file_of", family=family)
    return _file(found[0]) if found else None


def set_file(db: apsw.Connection, file: File) -> None:
    """Remember how a file was taken in."""
    name, family, seen, *rest = file
    db.execute(QUERIES["set_file"], (name, family, *seen, *rest))


def forget_file(db: apsw.Connection, name: str) -> None:
    """A file is no longer there."""
    rows(db, "forget_file", name=name)


def problems(db: apsw.Connection) -> list[Problem]:
    """The files that are not as they were written."""
    return [
        Problem(name, family, what, bool(is_certain))
        for name, family, what, is_certain in rows(db, "problems")
    ]


def family_of(db: apsw.Connection, thread: str) -> int | None:
    """The family of a thread, or of the last one that had the name."""
    found: list[Row] = db.execute(QUERIES["family_of"], (thread,)).fetchall()
    return found[0][0] if found else None


def _file(row: Row) -> File:
    name, family, size, modified, inode, taken, tail, problem, is_certain = row
    seen = Seen(size, modified, inode)
    return File(name, family, seen, taken, tail, problem, bool(is_certain))
