"""A folder that is only read: nothing in it is made, changed or removed.

The index is in memory. It begins as a copy of the one in the folder, if there is one,
and takes in whatever that does not know.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar
from urllib.parse import quote

import apsw

from holdfast.backends.directory import _catalog
from holdfast.backends.directory._backend import DirectoryBackend
from holdfast.backends.directory._files import Files
from holdfast.backends.directory._open import find_index, must_be_store
from holdfast.backends.directory._pending_view import View
from holdfast.backends.directory._scope import EVERYTHING, Target, reach
from holdfast.backends.directory._sync import Settling, compare
from holdfast.backends.sqlite._connection import MEMORY, connect, prepare, translated
from holdfast.errors import Closed, Corrupt, HoldfastError, Unsupported

R = TypeVar("R")


class ReadOnlyBackend(DirectoryBackend):
    """The port over a folder that is left as it is."""

    def __init__(
        self, path: str, *, busy_timeout: float, vfs: str | None, files: Files
    ) -> None:
        super().__init__(path, busy_timeout=busy_timeout, vfs=vfs, files=files)
        self._read_only = True

    def _open(self) -> None:
        folder, self.path = self.folder, MEMORY
        self.folder = self._view = View(folder.path, folder.files, self._busy_timeout)
        must_be_store(self.folder)
        with self.folder.lock.shared():
            self._writer = self._copied_index() or self._new_index()
            self._settle(EVERYTHING, fresh=True)
        self._epoch = _catalog.folder_state(self._writer).epoch

    def _new_index(self) -> apsw.Connection:
        db = connect(MEMORY, read_only=False, busy_timeout=0, vfs=None)
        prepare(db, MEMORY, self._durability, self._page_size)
        _catalog.set_up(db, MEMORY)
        return db

    def _copied_index(self) -> apsw.Connection | None:
        """The index of the folder, in memory; ``None`` if there is no good one."""
        path = find_index(self.folder) if os.path.isdir(self.folder.work) else None
        if path is None:
            return None
        db = connect(MEMORY, read_only=False, busy_timeout=0, vfs=None)
        try:
            with translated(path):
                _copy(path, db, self._vfs)
                prepare(db, MEMORY, self._durability, self._page_size)
                _catalog.set_up(db, path)
        except HoldfastError:
            # It is damaged, or somebody is just closing it: the files will do.
            db.close()
            return None
        return db

    def _settle(self, target: Target, *, fresh: bool = False) -> None:
        db = self._writing()
        self._view.refresh()
        found = compare(db, self.folder, reach(db, target).families)
        if found:
            Settling(db, self.folder, cutting=False, fresh=fresh).run(found)

    def _has_index(self) -> bool:
        return True

    def _try_to_catch_up(self, target: Target) -> None:
        with (
            self._lock,
            translated(self.path),
            self.folder.translated(),
            self.folder.lock.shared(),
        ):
            self._settle(target)

    def _exclusively(
        self,
        work: Callable[[apsw.Connection], R],  # noqa: ARG002 - none is done
        target: Target = EVERYTHING,  # noqa: ARG002
    ) -> R:
        if self._closed:
            raise Closed
        text = f"{self.folder.path} is open for reading only"
        raise Unsupported(text, code="read_only")


def _copy(path: str, db: apsw.Connection, vfs: str | None) -> None:
    """Copy a database without making a file, where that is possible."""
    logs = [os.path.exists(path + suffix) for suffix in ("-wal", "-shm")]
    if any(logs) and not all(logs):
        raise Corrupt(path)
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    # Nobody writes to it now; without a log, all of it is in the one file.
    alone = "" if any(logs) else "?immutable=1"
    source = apsw.Connection(f"file:{quote(path)}{alone}", flags=flags, vfs=vfs)
    try:
        with db.backup("main", source, "main") as backup:
            backup.step()
    finally:
        source.close()
