"""The index of a folder that is only read: nothing is made, changed or removed.

It is in memory. It begins as a copy of the index in the folder, if there is one, and
takes in what that does not know.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from urllib.parse import quote

import apsw

from holdfast._port import Write
from holdfast.backends.directory import _catalog, _scope
from holdfast.backends.directory._folder import FolderErrors
from holdfast.backends.directory._open import find_index, must_be_store, prepare_index
from holdfast.backends.directory._pending_view import PendingView
from holdfast.backends.directory._scope import EVERYTHING, FolderScope
from holdfast.backends.directory._sync import IndexUpdate, compare
from holdfast.backends.sqlite import (
    MEMORY,
    Database,
    Subject,
    page_checksums,
    transaction,
    translated,
)
from holdfast.errors import Corrupt, HoldfastError, Unsupported


class MemoryIndex:
    """An index of this process alone, in memory; refuses every write."""

    path = MEMORY
    is_read_only = True

    def __init__(self, folder: PendingView, vfs: str | None) -> None:
        self.folder = folder
        self.queue = contextlib.nullcontext()
        self.epoch: int | None = None
        self._vfs = vfs or page_checksums()

    def errors(self) -> FolderErrors:
        return FolderErrors(self.path, self.folder.path)

    def exists(self) -> bool:
        return True

    def open(self, database: Database) -> apsw.Connection:
        must_be_store(self.folder)
        with self.folder.lock.shared():
            db = self._copied_index(database) or self._new_index(database)
            self.update(db, EVERYTHING, fresh=True)
        self.epoch = _catalog.folder_state(db).epoch
        return db

    def _new_index(self, database: Database) -> apsw.Connection:
        db = database.connect(read_only=False)
        prepare_index(db, MEMORY)
        return db

    def _copied_index(self, database: Database) -> apsw.Connection | None:
        """The index of the folder, in memory; ``None`` if there is no good one."""
        path = find_index(self.folder) if os.path.isdir(self.folder.work) else None
        if path is None:
            return None
        db = database.connect(read_only=False)
        try:
            with translated(path):
                _copy(path, db, self._vfs)
                prepare_index(db, MEMORY)
        except HoldfastError:
            # It is damaged, or a process is just closing it: the files are enough.
            db.close()
            return None
        return db

    def update(
        self, db: apsw.Connection, scope: FolderScope, *, fresh: bool = False
    ) -> None:
        self.folder.refresh()
        found = compare(db, self.folder, _scope.families_of(db, scope).families)
        if found:
            IndexUpdate(db, self.folder, cutting=False, fresh=fresh).run(found)

    def catch_up(self, database: Database, scope: FolderScope) -> None:
        with database.lock, self.errors(), self.folder.lock.shared():
            self.update(database.writer, scope)

    def renew(self, database: Database, damaged: str) -> None:  # noqa: ARG002
        raise Corrupt(damaged)

    def before_write(self, database: Database, subject: Subject) -> None:  # noqa: ARG002
        text = f"{self.folder.path} is open for reading only"
        raise Unsupported(text, code="read_only")

    def check_writes(
        self,
        db: apsw.Connection,  # noqa: ARG002
        writes: Sequence[Write],
    ) -> Sequence[Write]:
        return writes

    def repair_pages(self, database: Database) -> bool:  # noqa: ARG002
        """It is in memory."""
        return False

    def check_loss(self, db: apsw.Connection) -> None:
        """It is made again from the files."""

    def acknowledge(self, db: apsw.Connection, last: int) -> None:
        """Do nothing: the index has only what the files say."""

    def before_close(self, db: apsw.Connection) -> None:
        """Do nothing: this holds nothing to give back."""

    def forsake(self) -> None:
        """Do nothing: this holds nothing to give back."""

    def transaction(self, db: apsw.Connection) -> transaction:
        return transaction(db)

    def announce(self, seconds: float) -> None:
        """No process waits for an index of this one."""

    def close(self) -> None:
        self.folder.lock.close()

    def before_fork(self) -> None:
        self.folder.lock.close()


def _copy(path: str, db: apsw.Connection, vfs: str | None) -> None:
    """Copy a database without making a file, where that is possible."""
    logs = [os.path.exists(path + suffix) for suffix in ("-wal", "-shm")]
    if any(logs) and not all(logs):
        raise Corrupt(path)
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    # No process writes to it now; without a log, all of it is in the one file.
    alone = "" if any(logs) else "?immutable=1"
    source = apsw.Connection(f"file:{quote(path)}{alone}", flags=flags, vfs=vfs)
    try:
        with db.backup("main", source, "main") as backup:
            backup.step()
    finally:
        source.close()
