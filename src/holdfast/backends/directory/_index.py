"""The index of a folder: a SQLite store whose every change is in the files first."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import TypeVar

import apsw

from holdfast.backends.directory import _catalog, _scope
from holdfast.backends.directory._file_changes import recover
from holdfast.backends.directory._files import Files
from holdfast.backends.directory._folder import Folder
from holdfast.backends.directory._open import (
    find_index,
    make_folder,
    new_index,
    prepare_folder,
    remove_index,
)
from holdfast.backends.directory._scope import EVERYTHING, Target
from holdfast.backends.directory._sync import Settling, compare
from holdfast.backends.directory._transaction import Recording, sync_log
from holdfast.backends.sqlite import SqliteBackend
from holdfast.backends.sqlite._connection import check_whole, prepare, translated
from holdfast.backends.sqlite._group_commit import Ticket, commit_tickets
from holdfast.backends.sqlite._readers import Readers
from holdfast.errors import Closed, Corrupt, FormatMismatch, HoldfastError

R = TypeVar("R")


class Index(SqliteBackend):
    """Keeps up with the folder it was made from.

    The lock of the folder is what keeps others away, not that of the database: an
    index can be removed while it is in use, and be made anew by somebody else.
    """

    def __init__(
        self, path: str, *, busy_timeout: float, vfs: str | None, files: Files
    ) -> None:
        self.folder = Folder(path, files, busy_timeout)
        # How often files had been replaced when this was opened, and whether some have
        # been since: a number can mean something else then.
        self._epoch: int | None = None
        self.is_replaced = False
        try:
            with self.folder.translated():
                super().__init__(
                    path, durability="normal", busy_timeout=busy_timeout, vfs=vfs
                )
        except BaseException:
            self.folder.lock.close()
            raise

    # --- opening ----------------------------------------------------------------------

    def _open(self) -> None:
        make_folder(self.folder.path)
        with self._queue():
            prepare_folder(self.folder)
            self._writer = self._open_index()

    def _open_index(self) -> apsw.Connection:
        """The index, up to date; it is made anew if it is missing or damaged."""
        found = find_index(self.folder)
        if found is not None:
            with contextlib.suppress(Corrupt, FormatMismatch):
                return self._open_index_at(found, fresh=False)
            remove_index(self.folder, found)
        return self._open_index_at(new_index(self.folder), fresh=True)

    def _open_index_at(self, path: str, *, fresh: bool) -> apsw.Connection:
        self.path = path
        with translated(path):
            db = self._connect(read_only=False)
            try:
                check_whole(db, path)
                prepare(db, path, self._durability, self._page_size)
                _catalog.set_up(db, path)
                recover(self.folder)
                self._catch_up(db, EVERYTHING, fresh=fresh)
            except BaseException:
                db.close()
                raise
        if self._epoch is None:
            self._epoch = _catalog.folder_state(db).epoch
        return db

    def _switch(self) -> apsw.Connection:
        """Go on with another index; called with the lock of the folder."""
        writer, self._writer = self._writer, None
        self._readers.close()
        self._readers = Readers(lambda: self._connect(read_only=True))
        if writer is not None:
            with contextlib.suppress(apsw.Error):
                writer.close()
        self._writer = self._open_index()
        return self._writer

    def renew(self, damaged: str) -> None:
        """Make a damaged index anew, unless somebody else has."""
        with self._lock, self.folder.translated(), self._queue():
            if self._closed:
                raise Closed
            if find_index(self.folder) == damaged:
                remove_index(self.folder, damaged)
            self._switch()

    # --- catching up ------------------------------------------------------------------

    def _catch_up(
        self, db: apsw.Connection, target: Target, *, fresh: bool = False
    ) -> None:
        """Take in what happened to files; called with the lock of the folder."""
        lock = self.folder.lock
        is_changing = lock.is_changing
        if is_changing:
            # Whoever was changing files did not come to an end.
            recover(self.folder)
            target = EVERYTHING
        found = compare(db, self.folder, _scope.reach(db, target).families)
        if found:
            Settling(db, self.folder, fresh=fresh).run(found)
            sync_log(db, self.folder)
        if is_changing:
            lock.note(changing=False)

    def look(self, target: Target) -> None:
        """Be up to date with the files that a request is about, and refuse bad ones.

        If somebody is changing files right now, what they do is not made yet.
        """
        if not self._has_index():
            self._exclusively(lambda _: None)
        with self.folder.translated(), self._reading() as db:
            if self._is_as_known(db, target):
                return
        self._try_to_catch_up(target)
        with self._reading() as db:
            _scope.guard(db, target)
            self.is_replaced = _catalog.folder_state(db).epoch != self._epoch

    def _is_as_known(self, db: apsw.Connection, target: Target) -> bool:
        epoch = _scope.is_as_known(db, self.folder, target)
        if epoch is None:
            families = _scope.reach(db, target).families
            if compare(db, self.folder, families):
                return False
            _scope.guard(db, target)
            epoch = _catalog.folder_state(db).epoch
        self.is_replaced = epoch != self._epoch
        return True

    def _has_index(self) -> bool:
        return os.path.exists(self.path)

    def catch_up(self) -> None:
        """Be up to date with all files, unless somebody is changing them."""
        self._try_to_catch_up(EVERYTHING)

    def _try_to_catch_up(self, target: Target) -> None:
        if not self._lock.acquire(blocking=False):
            return
        try:
            with translated(self.path), self.folder.translated():
                self._writing()
                if self.folder.lock.try_enter():
                    with contextlib.ExitStack() as stack:
                        stack.push(self.folder.lock.__exit__)
                        self._settled(target)
        finally:
            self._lock.release()

    def _settled(self, target: Target) -> apsw.Connection:
        db = self._writing()
        if db.in_transaction:  # whoever began it was interrupted
            db.execute("rollback")
        if not self._has_index():
            db = self._switch()
        self._catch_up(db, target)
        return db

    # --- writing ----------------------------------------------------------------------

    def _exclusively(
        self, work: Callable[[apsw.Connection], R], target: Target = EVERYTHING
    ) -> R:
        path = self.path
        with self.folder.translated():
            try:
                return super()._exclusively(lambda _: work(self._settled(target)))
            except Corrupt as error:
                if error.what != path:
                    raise
            self.renew(path)
            return super()._exclusively(lambda _: work(self._settled(target)))

    def _queue(self) -> contextlib.AbstractContextManager[None]:
        return self.folder.lock

    def _transaction(self, db: apsw.Connection) -> Recording:
        return Recording(db, self.folder)

    def rewrite(self, family: int) -> None:
        """Write the file of a family anew, with nothing in it that is over."""

        def carry_out(db: apsw.Connection) -> None:
            with Recording(db, self.folder, [family]):
                pass

        self._exclusively(carry_out, _scope.family(family))

    def _commit_tickets(self, tickets: list[Ticket]) -> None:
        writes = (write for ticket in tickets for write in ticket.writes)
        target = _scope.of_writes(writes)
        try:
            self._exclusively(lambda db: self._commit_sound(db, tickets), target)
        except HoldfastError as error:
            for ticket in tickets:
                if not ticket.done:
                    ticket.error = error

    def _commit_sound(self, db: apsw.Connection, tickets: list[Ticket]) -> None:
        """Commit what is not about a damaged file."""
        sound: list[Ticket] = []
        is_replaced = _catalog.folder_state(db).epoch != self._epoch
        for ticket in tickets:
            if ticket.done:
                continue
            try:
                _scope.guard(db, _scope.of_writes(ticket.writes))
            except Corrupt as error:
                ticket.error, ticket.done = error, True
                continue
            if is_replaced:
                ticket.writes = _scope.current(db, ticket.writes)
            sound.append(ticket)
        if sound:
            commit_tickets(db, sound, self._transaction)

    # --- the end ----------------------------------------------------------------------

    async def close(self) -> None:
        await super().close()
        self.folder.lock.close()

    def before_fork(self) -> None:
        super().before_fork()
        if self._quiet:
            self.folder.lock.abandon()
