"""The hooks of the index: a SQLite database that changes after the files have."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

import apsw

from holdfast._port import Write
from holdfast.backends.directory import _catalog, _scope
from holdfast.backends.directory._file_changes import recover
from holdfast.backends.directory._folder import UNSAVED, Folder, FolderErrors
from holdfast.backends.directory._names import STORE
from holdfast.backends.directory._open import (
    FORMAT,
    find_index,
    format_of,
    make_folder,
    new_index,
    prepare_folder,
    prepare_index,
    remove_index,
)
from holdfast.backends.directory._scope import EVERYTHING, FolderScope
from holdfast.backends.directory._sync import IndexUpdate, compare
from holdfast.backends.directory._transaction import FolderTransaction, sync_log
from holdfast.backends.sqlite import Database, LogSize, Subject, check_whole
from holdfast.errors import Corrupt, FormatMismatch


class FileIndex:
    """An index in a file of the folder, which processes share.

    The lock of the folder decides which process may write, not that of the database: a
    person can remove an index while it is in use, and another process make a new one.
    """

    is_read_only = False

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.path = folder.path
        self.queue = folder.lock
        # How often files had been replaced when the index was first opened.
        self.epoch: int | None = None
        self._log_size = LogSize()

    def errors(self, outcome: str = "") -> FolderErrors:
        return FolderErrors(self.path, self.folder.path, outcome)

    def exists(self) -> bool:
        return os.path.exists(self.path)

    # --- opening ----------------------------------------------------------------------

    def open(self, database: Database) -> apsw.Connection:
        make_folder(self.folder.path)
        with self.queue:
            prepare_folder(self.folder)
            return self._open(database)

    def _bring_up_to_date(self, db: apsw.Connection) -> None:
        """Write the format into the file of the store, unless that is damaged."""
        found = format_of(self.folder)
        if found is None or found >= FORMAT:
            return
        if STORE not in {problem.name for problem in _catalog.problems(db)}:
            with FolderTransaction(db, self.folder, [0]):
                pass

    def _open(self, database: Database) -> apsw.Connection:
        """The index, up to date; a missing or damaged one is made from the files."""
        found = find_index(self.folder)
        if found is not None:
            with contextlib.suppress(Corrupt, FormatMismatch):
                return self._open_at(found, database, fresh=False)
            remove_index(self.folder, found)
        return self._open_at(new_index(self.folder), database, fresh=True)

    def _open_at(
        self, path: str, database: Database, *, fresh: bool
    ) -> apsw.Connection:
        self.path = path
        with self.errors():
            db = database.connect(read_only=False)
            try:
                check_whole(db, path)
                prepare_index(db, path)
                recover(self.folder)
                self.update(db, EVERYTHING, fresh=fresh)
                self._bring_up_to_date(db)
            except BaseException:
                db.close()
                raise
        if self.epoch is None:
            self.epoch = _catalog.folder_state(db).epoch
        return db

    def renew(self, database: Database, damaged: str) -> None:
        """Make a damaged index again, unless another process has."""
        with database.lock, self.errors():
            database.open()
            with self.queue:
                if find_index(self.folder) == damaged:
                    remove_index(self.folder, damaged)
                database.replace_writer(self._open(database))

    # --- catching up with the files ---------------------------------------------------

    def update(
        self, db: apsw.Connection, scope: FolderScope, *, fresh: bool = False
    ) -> None:
        """Take in what happened to files; called with the lock of the folder."""
        lock = self.folder.lock
        is_changing = lock.is_changing or self.folder.is_unfinished
        if is_changing:
            # The process that was changing files was stopped half-way.
            recover(self.folder)
            scope = EVERYTHING
        found = compare(db, self.folder, _scope.families_of(db, scope).families)
        if found:
            IndexUpdate(db, self.folder, fresh=fresh).run(found)
            sync_log(db, self.folder)
        if is_changing:
            lock.note(changing=False)
            self.folder.is_unfinished = False

    def catch_up(self, database: Database, scope: FolderScope) -> None:
        """Like `update`, unless a thread or process is writing now.

        It waits for them if the index may lack what this process has acknowledged.
        """
        lock, must = database.lock, self.folder.is_unfinished
        if not (database.acquire(lock) if must else lock.acquire(blocking=False)):
            return
        try:
            with self.errors():
                database.make_idle()
                if self.queue.try_enter():
                    with contextlib.ExitStack() as stack:
                        stack.push(self.queue.__exit__)
                        self._update_existing(database, scope)
                elif must:
                    with self.queue:
                        self._update_existing(database, scope)
        finally:
            lock.release()

    def _update_existing(self, database: Database, scope: FolderScope) -> None:
        if not self.exists():
            database.replace_writer(self._open(database))
        self.update(database.writer, scope)

    # --- writing ----------------------------------------------------------------------

    def before_write(self, database: Database, subject: Subject) -> None:
        self._log_size.tell()
        with self.errors(UNSAVED):
            self._update_existing(database, _scope.of_change(subject))

    def check_writes(
        self, db: apsw.Connection, writes: Sequence[Write]
    ) -> Sequence[Write]:
        """Refuse what is about a damaged file, and what numbers no longer mean."""
        _scope.guard(db, _scope.of_writes(writes))
        if _catalog.folder_state(db).epoch != self.epoch:
            return _scope.current(db, writes)
        return writes

    def transaction(self, db: apsw.Connection) -> FolderTransaction:
        return FolderTransaction(db, self.folder)

    def announce(self, seconds: float) -> None:
        self.folder.lock.announce(seconds)

    def repair_pages(self, database: Database) -> bool:  # noqa: ARG002
        """An index whose pages do not fit is made again."""
        return False

    def check_loss(self, db: apsw.Connection) -> None:
        """Do nothing: the files have all that the index has lost."""

    def acknowledge(
        self,
        db: apsw.Connection,
        last: int,  # noqa: ARG002 - the files have it
    ) -> None:
        self._log_size.look(db)

    def before_close(self, db: apsw.Connection) -> None:
        """Do nothing: this holds nothing to give back."""

    def forsake(self) -> None:
        """Do nothing: this holds nothing to give back."""

    def close(self) -> None:
        self.folder.lock.close()

    def before_fork(self) -> None:
        self.folder.lock.close()
