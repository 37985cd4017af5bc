"""What surrounds a SQLite database: how it is opened, locked, checked and changed.

A `SqliteBackend` asks these hooks and nothing else about its surroundings. `FileHooks`
are those of a plain file. The directory backend has its own: its database is an index,
whose every change is in the files of a folder first.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

import apsw

from holdfast._port import Prune, Write
from holdfast.backends.sqlite._connection import (
    MEMORY,
    Durability,
    check_whole,
    prepare,
    transaction,
    translated,
)
from holdfast.backends.sqlite._writer_queue import WriterQueue
from holdfast.errors import Unsupported

if TYPE_CHECKING:
    from holdfast.backends.sqlite._database import Database

# Of a turn's 1.5 kB, 4 kB pages hold two and waste a quarter; 8 kB pages hold five.
# Blocks that are compressed take many pages each, and waste half of the last one.
PAGE, SMALL_PAGE = 8192, 1024


# What a change is about: the writes of a commit, a prune, or ``None`` for any other.
Subject = Iterable[Write] | Prune | None


class Hooks(Protocol):
    """In a write they are asked in this order: `errors`, `queue`, `before_write`,
    `transaction`, and `check_writes` for the writes of each caller of a commit.
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
        """What every change of records happens in: all of it, or nothing.

        Gives a cursor for the statements.
        """
        ...

    def announce(self, seconds: float) -> None:
        """Tell other processes how long a write will take; with the queue held."""
        ...

    def close(self) -> None:
        """The database is being closed."""
        ...

    def before_fork(self) -> None:
        """Have no file open that a forked child would share."""
        ...


class FileHooks:
    """A plain file, or a private database in memory."""

    def __init__(
        self,
        path: str,
        *,
        read_only: bool,
        durability: Durability,
        busy_timeout: float,
        compress: bool,
    ) -> None:
        self.path = path
        self._read_only = read_only
        self._durability: Durability = durability
        self._page_size = SMALL_PAGE if compress else PAGE
        self._file_queue = WriterQueue(f"{path}-lock", busy_timeout)
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
            db = database.connect(read_only=False)
            try:
                check_whole(db, self.path)
                prepare(db, self.path, self._durability, self._page_size)
            except BaseException:
                db.close()
                raise
        return db

    def before_write(self, database: Database, subject: Subject) -> None:
        """The database is always ready."""

    def check_writes(
        self,
        db: apsw.Connection,  # noqa: ARG002 - nothing has to be looked up
        writes: Sequence[Write],
    ) -> Sequence[Write]:
        return writes

    def transaction(self, db: apsw.Connection) -> transaction:
        return transaction(db)

    def announce(self, seconds: float) -> None:
        self._file_queue.announce(seconds)

    def close(self) -> None:
        self._file_queue.close()

    def before_fork(self) -> None:
        self._file_queue.abandon()
