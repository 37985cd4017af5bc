"""Hooks around a SQLite database: opening, locking, checking and changing it.

A `SqliteBackend` asks these hooks and nothing else about its surroundings. `FileHooks`
are those of a plain file. The directory backend has its own: its database is an index,
whose every change is in the files of a folder first.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeAlias

import apsw

from holdfast._port import Prune, Write
from holdfast.backends.sqlite import _log_size, _maintenance, _open_files, _page_repair
from holdfast.backends.sqlite._acknowledged import (
    Durability,
    check_acknowledged,
    check_nothing_acknowledged,
    forget_acknowledged,
    identity_of,
    lent_file,
    read_acknowledged,
    write_acknowledged,
)
from holdfast.backends.sqlite._connection import (
    MEMORY,
    check_whole,
    file_size,
    identify,
    leave_log,
    prepare,
    transaction,
    translated,
)
from holdfast.backends.sqlite._log_size import LogSize
from holdfast.backends.sqlite._open_files import OpenFiles
from holdfast.backends.sqlite._writer_queue import WriterQueue
from holdfast.errors import Corrupt, HoldfastError, Unsupported

if TYPE_CHECKING:  # an import cycle
    from holdfast.backends.sqlite._database import Database

# Of a turn's 1.5 kB, 4 kB pages hold two and waste a quarter; 8 kB pages hold five.
# With 4 kB a save would be 8 % faster, and a chat take 1.6 of its text, not 1.5. Blocks
# that are compressed take many pages each, and waste half of the last one. With pages
# of 1 kB a compacted chat takes 0.549 of its text, not 0.571, but journal entries of
# more than a page, as LangGraph makes them, make its file a sixth larger.
PAGE, SMALL_PAGE = 8192, 2048
# How long saves that are not synced go on without a look at the log, which takes 3 %
# of one. What is saved meanwhile is still in the connection, and is rescued with it.
UNSYNCED_PAUSE = 0.01
# For so long a file that was found damaged is not checked again, which reads all of it.
REPAIR_PAUSE = 60.0


# The subject of a change: the writes of a commit, a prune, or ``None`` for any other.
Subject: TypeAlias = "Iterable[Write] | Prune | None"


class Hooks(Protocol):
    """The surroundings of a database, which a `SqliteBackend` asks.

    In a write it asks in this order: `errors`, `queue`, `before_write`, `transaction`,
    and `check_writes` for the writes of each caller of a commit.
    """

    @property
    def path(self) -> str:
        """The database file, or ":memory:"; it may be another after `open`."""
        ...

    @property
    def queue(self) -> contextlib.AbstractContextManager[object]:
        """Held by one process at a time for each write."""
        ...

    def errors(self) -> contextlib.AbstractContextManager[None]:
        """Turns the errors of the technology into ours."""
        ...

    def open(self, database: Database) -> apsw.Connection:
        """The writing connection, ready to use; takes the queue itself."""
        ...

    def check_loss(self, db: apsw.Connection) -> None:
        """Refuse a store that has lost its last changes; for one that is only read."""
        ...

    def before_write(self, database: Database, subject: Subject) -> None:
        """Make the database ready for a write; called with the queue held."""
        ...

    def check_writes(
        self, db: apsw.Connection, writes: Sequence[Write]
    ) -> Sequence[Write]:
        """The writes of one caller as they may be made; raises to refuse them."""
        ...

    def transaction(
        self, db: apsw.Connection
    ) -> contextlib.AbstractContextManager[apsw.Cursor]:
        """The transaction around every change of records: all of it, or nothing.

        Gives a cursor for the statements.
        """
        ...

    def announce(self, seconds: float) -> None:
        """Tell other processes how long a write will take; with the queue held."""
        ...

    def repair_pages(self, database: Database) -> bool:
        """True if the pages whose checksums did not fit can be read now.

        See `_page_repair`.
        """
        ...

    def acknowledge(self, db: apsw.Connection, last: int) -> None:
        """A commit is done whose callers are not told yet; raises if it would be lost.

        ``last`` is the number of the last change in it, or of one before.
        """
        ...

    def before_close(self, db: apsw.Connection) -> None:
        """The writing connection is about to be closed."""
        ...

    def forsake(self) -> None:
        """It is about to be closed by the garbage collector or before a fork."""
        ...

    def close(self) -> None:
        """The database is being closed."""
        ...

    def before_fork(self) -> None:
        """Have no file open that a forked child would share."""
        ...


class FileHooks:
    """A plain file, or a private database in memory."""

    transaction = transaction

    def __init__(
        self,
        path: str,
        *,
        read_only: bool,
        durability: Durability,
        busy_timeout: float,
        compress: bool,
        accept_loss: bool,
    ) -> None:
        # SQLite follows a link to the database: what stands beside it does so there.
        path = os.path.realpath(path) if os.path.islink(path) else path
        self.path = path
        self._accept_loss = accept_loss
        self._identity = b""
        self._files: OpenFiles | None = None
        self._rescued: HoldfastError | None = None
        self._misses_changes = False
        self._read_only = read_only
        self._durability: Durability = durability
        self._page_size = SMALL_PAGE if compress else PAGE
        self._repair_lock = threading.Lock()
        self._next_repair = 0.0
        self._log_size: LogSize | None = None
        self._lock = f"{path}-lock"
        self._file_queue = WriterQueue(self._lock, busy_timeout)
        self.queue: contextlib.AbstractContextManager[object] = (
            contextlib.nullcontext() if path == MEMORY else self._file_queue
        )

    def errors(self) -> translated:
        return translated(self.path)

    def open(self, database: Database) -> apsw.Connection:
        if self._read_only:
            text = f"{self.path} is open for reading only"
            raise Unsupported(text, code="read_only")
        # One process after the other: a process that opens a file which another is
        # still setting up would not know that its pages carry checksums.
        with self.queue:
            if self.path != MEMORY and not os.path.exists(self.path):
                self._check_new()
            before = _open_files.open_descriptors()
            db = database.connect(read_only=False)
            try:
                check_whole(db, self.path)
                self.check_loss(db)
                prepare(db, self.path, self._durability, self._page_size)
                self._identity = identity_of(db)
                self._make_lasting(db)
                self._files = self._opened(before)
            except BaseException:
                db.close()
                raise
        return db

    def _opened(self, before: frozenset[int]) -> OpenFiles | None:
        if self.path == MEMORY:
            return None
        pause = UNSYNCED_PAUSE if self._durability == "normal" else 0.0
        try:
            return _open_files.OpenFiles(self.path, before, pause)
        except OSError as error:
            text = f"{error.filename} is gone; do not remove files of an open store"
            raise HoldfastError(text, code="log_removed") from error

    def check_loss(self, db: apsw.Connection) -> None:
        """Refuse a store without the last changes, unless their loss is accepted."""
        if self.path == MEMORY:
            return
        # SQLite removes the log of an empty file as soon as it reads that.
        if file_size(self.path) == 0 or identify(db, self.path) == 0:
            self._check_new(db)
        else:
            self._check_lock_file(partial(check_acknowledged, db), db)

    def _check_new(self, db: apsw.Connection | None = None) -> None:
        """Refuse to begin a store where one was, unless its loss is accepted."""
        self._check_lock_file(check_nothing_acknowledged, db)

    def _check_lock_file(
        self, check: Callable[..., bool], db: apsw.Connection | None
    ) -> None:
        try:
            with self._lock_file() as file:
                lost = check(self.path, file, accept_loss=self._accept_loss)
                if lost and not self._read_only:
                    forget_acknowledged(file)
        except Corrupt:
            # All files stay as they are.
            self._misses_changes = True
            if db is not None:
                leave_log(db)
            raise

    def _lock_file(self) -> contextlib.AbstractContextManager[int]:
        return lent_file(self._file_queue.descriptor, self._lock)

    def _make_lasting(self, db: apsw.Connection) -> None:
        """Copy the log of a new store into its file before a change is acknowledged.

        A new store is in its log alone, and a file without tables could not tell whose
        acknowledged changes the lock file counts.
        """
        if self.path == MEMORY:
            return
        with self._lock_file() as file:
            is_noted = read_acknowledged(file, self._identity).last > 0
        if not is_noted:
            with contextlib.suppress(apsw.Error):  # it stays in the log then
                db.wal_checkpoint()

    def before_write(
        self,
        database: Database,  # noqa: ARG002 - it is always ready
        subject: Subject,  # noqa: ARG002
    ) -> None:
        if self._rescued is not None:
            raise self._rescued
        if self._log_size is not None:
            self._log_size.tell()

    def acknowledge(self, db: apsw.Connection, last: int) -> None:
        files, records = self._files, self._file_queue.records
        if files is not None and not files.may_have_log():
            self._rescued = _maintenance.rescue(db, self.path, files.log)
            raise self._rescued
        if records is not None:
            write_acknowledged(records, self._identity, last, self._durability)
        if self._log_size is None:
            self._log_size = _log_size.LogSize()
        self._log_size.look(db)

    def before_close(self, db: apsw.Connection) -> None:
        files, self._files = self._files, None
        if files is None:
            return
        files.unlock()
        if files.has_log():
            return
        # Another program may have written since: nothing may be copied over that.
        leave_log(db)
        # If the database was removed as well, there is nothing to keep.
        if self._rescued is None and os.path.exists(self.path):
            raise _maintenance.rescue(db, self.path, files.log)

    def forsake(self) -> None:
        files, self._files = self._files, None
        if files is not None:
            files.unlock()

    def check_writes(
        self,
        db: apsw.Connection,  # noqa: ARG002 - nothing has to be looked up
        writes: Sequence[Write],
    ) -> Sequence[Write]:
        return writes

    def announce(self, seconds: float) -> None:
        self._file_queue.announce(seconds)

    def repair_pages(self, database: Database) -> bool:
        if self.path == MEMORY:
            return False
        with self._repair_lock:
            if time.monotonic() < self._next_repair:
                return False
            if _page_repair.repair_pages(
                database, self.path, read_only=self._read_only
            ):
                return True
            self._next_repair = time.monotonic() + REPAIR_PAUSE
            return False

    def close(self) -> None:
        # As long as there is a log, a part of it can be lost.
        has_log = os.path.exists(f"{self.path}-wal")
        self._file_queue.close(remove=not (has_log or self._misses_changes))

    def before_fork(self) -> None:
        self._file_queue.abandon()
