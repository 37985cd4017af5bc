"""Work on the file as a whole: checking, shrinking, and copies of it."""

from __future__ import annotations

import contextlib
import errno
import os
import time

import apsw

from holdfast.backends.sqlite._connection import (
    connect,
    ignore_page_checksums,
    page_checksums,
    snapshot,
    unchecked_pages,
)
from holdfast.backends.sqlite._search import optimize, refresh
from holdfast.backends.sqlite._statements import rows
from holdfast.errors import HoldfastError

_FAILED_WRITES = {
    apsw.SQLITE_FULL: errno.ENOSPC,
    apsw.SQLITE_IOERR_WRITE: errno.EIO,
    apsw.SQLITE_IOERR_FSYNC: errno.EIO,
    apsw.SQLITE_IOERR_TRUNCATE: errno.EIO,
}


def check_file(db: apsw.Connection) -> list[str]:
    """The problems that SQLite and the checksums of rows find."""
    with snapshot(db):
        refresh(db)
        found = db.execute("pragma integrity_check").fetchall()
        wrong = rows(db, "wrong_rows")
    return [str(line) for (line,) in found if line != "ok"] + [
        f"{table} {key} is not as it was written"
        for table, key, has_none in wrong
        if not has_none
    ]


def shrink(db: apsw.Connection, *, pack: bool) -> None:
    """Write the file again, without unused pages; ``pack`` what can be packed."""
    optimize(db)
    rows(db, "drop_dictionary")
    if pack:
        rows(db, "pack_manifests")
    db.execute("vacuum")
    db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)


def shrink_unchecked(db: apsw.Connection, *, pack: bool) -> None:
    """Like `shrink`, without checking the checksums of pages."""
    with unchecked_pages(db):
        shrink(db, pack=pack)


def copy_file(db: apsw.Connection, path: str, vfs: str | None) -> None:
    """Copy the used pages into an empty file."""
    try:
        _copy(db, path, vfs)
    except apsw.Error as error:
        # The error of a full or broken disk is about the copy, not about the store.
        number = _FAILED_WRITES.get(getattr(error, "extendedresult", 0))
        if number is None:
            raise
        raise OSError(number, os.strerror(number)) from error


def _copy(db: apsw.Connection, path: str, vfs: str | None) -> None:
    db.execute("vacuum into ?", (path,))
    # If there are more than two megabytes, SQLite writes other pages before the first,
    # which tells the VFS that pages carry checksums. Those pages got none, so all pages
    # are written once more.
    copy = connect(path, read_only=False, busy_timeout=0.0, vfs=vfs)
    try:
        ignore_page_checksums(copy)
        copy.execute("pragma journal_mode = off")
        copy.execute("pragma synchronous = off")
        copy.execute("vacuum")
    finally:
        copy.close()


def remove_new(part: str, path: str) -> None:
    """Remove a new file that is not complete, under either of its names."""
    # If it has its name already, only the syncing of that failed.
    name = part if os.path.lexists(part) else path
    for file in (name, f"{part}-journal"):
        with contextlib.suppress(OSError):
            os.unlink(file)


def rescue(db: apsw.Connection, path: str, log: str) -> HoldfastError:
    """Copy what a connection sees whose log is lost; the error that says so.

    The connection has all that was acknowledged, the folder may not. The file cannot be
    repaired from here: other programs may have written to it since.
    """
    copy = f"{path}.rescued-{os.getpid()}-{time.time_ns()}"
    cause = (
        f"{log} was removed or replaced while the store was open: this was not saved"
    )
    way_out = "stop all programs that use the store"
    try:
        make_private(copy)
        copy_file(db, copy, page_checksums())
        sync_file(copy)
    except (apsw.Error, HoldfastError, OSError) as error:
        text = (
            f"{cause}. Copy the rest with backup() from here ({error}), and {way_out}"
        )
    else:
        text = (
            f"{cause}. All that was saved before is in {copy}: {way_out}, move it to"
            f" {path}, remove the -wal and -shm files beside it, and open it again"
        )
    return HoldfastError(text, code="log_removed")


def make_private(path: str) -> None:
    """Make an empty file that only its owner can read."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError as error:
        text = f"{path} cannot be made: {error.strerror}; choose another place"
        raise HoldfastError(text, code="cannot_open") from error


def sync_file(path: str) -> None:
    """Make a file, or the names in a folder, survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
