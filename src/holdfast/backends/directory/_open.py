"""Making a folder a store, and finding or making its index."""

from __future__ import annotations

import os
import secrets

import apsw

from holdfast.backends.directory import _catalog
from holdfast.backends.directory._file_changes import FileChanges
from holdfast.backends.directory._files import Files
from holdfast.backends.directory._folder import WORK, Folder
from holdfast.backends.directory._lines import (
    BadLine,
    LineContent,
    LineEncoder,
    read_lines,
)
from holdfast.backends.directory._names import STORE
from holdfast.backends.sqlite import PAGE, prepare
from holdfast.errors import FormatMismatch, HoldfastError, NotFound

# Format 2: checkpoints can have files, which a version of format 1 would lose.
FORMAT = 2
INDEX, DATABASE = "index-", ".db"
# Git must ignore the work folder, and must not change line breaks.
IGNORED = (f"{WORK}/.gitignore", b"*\n")
ATTRIBUTES = (".gitattributes", b"*.jsonl -text\n")


def make_folder(path: str) -> None:
    """Make a folder that only its owner can read."""
    parent = os.path.dirname(path)
    try:
        if not os.path.isdir(path):
            os.makedirs(path, 0o700, exist_ok=True)
            Files().sync_folder(parent)
        work = os.path.join(path, WORK)
        os.makedirs(work, 0o700, exist_ok=True)
    except OSError as error:
        text = f"{path} cannot be made: {error.strerror}; choose another place"
        raise HoldfastError(text, code="cannot_open") from error
    if os.path.islink(work):
        # Files that are not of this store would be made and removed there.
        text = f"{work} is a symbolic link, which is not followed; remove it"
        raise HoldfastError(text, code="cannot_open")


def prepare_folder(folder: Folder) -> None:
    """Make a folder a store, unless it is one; refuses a folder with other files."""
    if folder.stamp(STORE) is not None:
        check_format(folder)
        return
    other = min(folder.listing(), default=None)
    if other is not None:
        raise FormatMismatch(
            f"{folder.path} has a file {other} but no {STORE}: it is not a Holdfast"
            " store, or not all of one; it was left as it is"
        )
    _tell_git(folder, *ATTRIBUTES)
    changes = FileChanges(folder)
    changes.create(STORE, LineEncoder().encode([LineContent(format=FORMAT)]))
    changes.carry_out()
    changes.finish()


def _tell_git(folder: Folder, name: str, content: bytes) -> None:
    path = folder.file(name)
    if not os.path.exists(path):
        folder.files.write(path, 0, content)


def check_format(folder: Folder) -> None:
    """Refuse a folder that was written by a newer version."""
    found = format_of(folder)
    if found is not None and found > FORMAT:
        raise FormatMismatch(
            f"{folder.path} has format {found}, newer than {FORMAT}; upgrade holdfast"
        )


def format_of(folder: Folder) -> int | None:
    """The format of a folder; ``None`` if it is damaged, as is told when it is read."""
    first = next(read_lines(folder.pieces(STORE)), None)
    if first is None or isinstance(first, BadLine):
        return None
    return first.format()


def must_be_store(folder: Folder) -> None:
    """Refuse to read a folder that is not a store."""
    if folder.stamp(STORE) is None:
        raise NotFound(f"{folder.path} is not a store; open it for writing first")
    check_format(folder)


def find_index(folder: Folder) -> str | None:
    """The path of the index; if making a new one was interrupted, of the first."""
    names = (n for n in os.listdir(folder.work) if n.startswith(INDEX))
    found = min((n for n in names if n.endswith(DATABASE)), default=None)
    return None if found is None else folder.work_file(found)


def new_index(folder: Folder) -> str:
    """The path for a new index.

    It is never that of an older one: a process that has the older one open removes its
    log by name.
    """
    _tell_git(folder, *IGNORED)
    return folder.work_file(f"{INDEX}{secrets.token_hex(4)}{DATABASE}")


def prepare_index(db: apsw.Connection, path: str) -> None:
    """Make the tables of an index, or check them."""
    prepare(db, path, "normal", PAGE)
    _catalog.set_up(db, path)


def remove_index(folder: Folder, path: str) -> None:
    """Remove an index that is damaged or of another version."""
    for suffix in ("", "-wal", "-shm"):
        folder.files.remove(path + suffix)
