"""The connections to one SQLite database: one that writes, and a pool that reads.

Only the thread that holds the lock uses the writing connection. A database in memory
has no other one, so that reads take the lock too.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Generator
from functools import partial
from typing import TypeVar

import apsw

from holdfast.backends.sqlite import _inspection
from holdfast.backends.sqlite._connection import (
    MEMORY,
    connect,
    ignore_page_checksums,
    is_bad_page,
)
from holdfast.backends.sqlite._hooks import Hooks, Subject
from holdfast.backends.sqlite._reader_pool import ReaderPool
from holdfast.backends.sqlite._statements import rows
from holdfast.errors import Busy, Closed, Corrupt

R = TypeVar("R")

# Bytes a second that even a slow disk takes.
SLOWEST = 8 << 20


class Database:
    """A database that is opened when it is first used, and again after a fork."""

    def __init__(self, hooks: Hooks, *, busy_timeout: float, vfs: str | None) -> None:
        self.hooks = hooks
        self.busy_timeout = busy_timeout
        self._vfs = vfs
        self._trusts_pages = False
        self._closed = False
        self._is_quiet = True
        # Until when a large change is expected to be written, by `time.monotonic`.
        self._busy_until = 0.0
        self._begin()

    def _begin(self) -> None:
        self.lock = threading.Lock()
        self._readers = self._new_pool()
        self._writer: apsw.Connection | None = None

    def _new_pool(self) -> ReaderPool:
        return ReaderPool(lambda: self.connect(read_only=True))

    @property
    def is_in_memory(self) -> bool:
        """True if there is only the writing connection."""
        return self.hooks.path == MEMORY

    @property
    def vfs(self) -> str | None:
        """The SQLite VFS of all connections; a database in memory has none."""
        return None if self.is_in_memory else self._vfs

    def connect(self, *, read_only: bool) -> apsw.Connection:
        """A new connection."""
        db = connect(
            self.hooks.path,
            read_only=read_only,
            busy_timeout=self.busy_timeout,
            vfs=self.vfs,
        )
        if self._trusts_pages:
            ignore_page_checksums(db)
        return db

    def trust_pages(self) -> None:
        """Read without page checksums from now on; for a store that is only read."""
        self._trusts_pages = True
        readers, self._readers = self._readers, self._new_pool()
        readers.close()

    @property
    def trusts_pages(self) -> bool:
        """True if page checksums are ignored."""
        return self._trusts_pages

    def repairing(self, attempt: Callable[[], R]) -> R:
        """Do something; once more if only the checksums of pages were in the way."""
        try:
            return attempt()
        except Corrupt as error:
            self._repair_or_raise(error)
        return attempt()

    def _repair_or_raise(self, error: Corrupt) -> None:
        if not is_bad_page(error) or not self.hooks.repair_pages(self):
            raise error

    # --- writing ----------------------------------------------------------------------

    @property
    def writer(self) -> apsw.Connection:
        """The writing connection."""
        if self._closed:
            raise Closed
        if self._writer is None:
            self._writer = self.hooks.open(self)
        return self._writer

    def open(self) -> None:
        """Open the database for writing, unless it is open."""
        _ = self.writer

    def make_idle(self) -> None:
        """Roll back what an interrupted caller began; only with the lock held."""
        db = self._writer or self.writer
        if db.in_transaction:
            db.execute("rollback")

    def replace_writer(self, writer: apsw.Connection) -> None:
        """Go on with another database; only with the lock held."""
        before, self._writer = self._writer, writer
        readers, self._readers = self._readers, self._new_pool()
        readers.close()
        if before is not None:
            with contextlib.suppress(apsw.Error):  # it may be damaged
                before.close()

    def exclusively(
        self,
        work: Callable[[apsw.Connection], R],
        subject: Subject = None,
    ) -> R:
        """Do work with the writing connection, alone among threads and processes.

        If page checksums were in the way and are repaired, it is done a second time.
        """
        try:
            return self._exclusively(work, subject)
        except Corrupt as error:
            self._repair_or_raise(error)
        return self._exclusively(work, subject)

    def _exclusively(self, work: Callable[[apsw.Connection], R], subject: Subject) -> R:
        # A signal's handler can raise after any call, so what follows an `acquire` may
        # not be done. Only `with` takes such a lock, and gives it back, in one step.
        if self.lock.locked():
            if not self.acquire(self.lock):
                path = self.hooks.path
                raise Busy(f"{path} is being written to; retry, or raise busy_timeout")
            self.lock.release()
        with self.lock:
            try:
                # Before queueing: a process that holds the queue may wait for SQLite's
                # lock, which an interrupted transaction still has.
                if (self._writer or self.writer).in_transaction:
                    self.make_idle()
                with self.hooks.queue:
                    self.hooks.before_write(self, subject)
                    return work(self._writer or self.writer)
            except Exception:
                with self.hooks.errors():  # only now: every save would pay for it
                    raise

    def acquire(self, lock: threading.Lock) -> bool:
        """Take a lock that a writing thread holds, unless that takes too long."""
        timeout = self.busy_timeout
        while not lock.acquire(timeout=timeout):
            timeout = self._busy_until - time.monotonic()
            if timeout <= 0:
                return False
        return True

    @contextlib.contextmanager
    def announced(self, size: int) -> Generator[None]:
        """Let others wait longer than the timeout while so many bytes are written."""
        self._announce(size / SLOWEST)
        try:
            yield
        finally:
            self._announce(0.0)

    def _announce(self, seconds: float) -> None:
        self._busy_until = time.monotonic() + seconds
        self.hooks.announce(seconds)

    # --- reading ----------------------------------------------------------------------

    def read(self, work: Callable[[apsw.Connection], R]) -> R:
        """Do one short read.

        The first ones have the writing connection while it is idle: a program with one
        thread needs no other. Opening one takes as long as reading 200 kB.
        """
        try:
            return self._read(work)
        except Corrupt as error:
            self._repair_or_raise(error)
        return self._read(work)

    def read_apart(self, work: Callable[[apsw.Connection], R]) -> R:
        """Do one read that saves do not have to wait for."""

        def attempt() -> R:
            with self.reading() as db:
                return work(db)

        return self.repairing(attempt)

    def _read(self, work: Callable[[apsw.Connection], R]) -> R:
        if self._writer is None or not self._readers.is_empty or self.lock.locked():
            with self.reading() as db:
                return work(db)
        with self.lock:
            try:
                self.make_idle()
                return work(self._writer or self.writer)
            except Exception:
                with self.hooks.errors():
                    raise

    @contextlib.contextmanager
    def reading(self) -> Generator[apsw.Connection]:
        """A connection for one short read."""
        if self._closed:
            raise Closed
        with self.hooks.errors():
            if self.is_in_memory:
                with self.lock:
                    yield self.writer
                return
            with self._readers.lend() as db:
                yield db

    def close_idle_readers(self) -> None:
        """Let reads have the writing connection again, while it is idle."""
        self._readers.close_idle()

    def inspect(self) -> _inspection.SqliteInspection:
        """A view of the database that may stay open for long."""
        with contextlib.suppress(Corrupt):  # the view tells what is damaged
            self.read_apart(lambda db: rows(db, "weigh_threads"))
        if self.is_in_memory:
            return _inspection.SqliteInspection(self.writer)
        readers = self._readers
        visit = readers.enter()
        try:
            with self.hooks.errors():
                db = self.connect(read_only=True)
                return _inspection.SqliteInspection(
                    db,
                    private=True,
                    checks_pages=not self._trusts_pages,
                    on_close=partial(readers.leave, visit),
                )
        except BaseException:
            readers.leave(visit)
            raise

    # --- the end, and forks -----------------------------------------------------------

    def close(self) -> None:
        """Close every connection; closing twice is fine."""
        with self.lock, self.hooks.errors():
            self._closed = True
            writer, self._writer = self._writer, None
            self._readers.close()
            try:
                if writer is not None:
                    with contextlib.closing(writer):
                        self.hooks.before_close(writer)
            finally:
                self.hooks.close()

    def __del__(self) -> None:
        """Let SQLite close the files of a store that was dropped without `close`."""
        if self._writer is not None:
            self.hooks.forsake()

    def before_fork(self) -> None:
        """Be in no transaction and have no file open, so that none is inherited."""
        self._is_quiet = self._readers.pause(self.busy_timeout)
        if not self._is_quiet:
            return
        if not self.lock.acquire(timeout=self.busy_timeout):
            self._is_quiet = False
            self._readers.resume()
            return
        if not self.is_in_memory:
            self.hooks.before_fork()
            writer, self._writer = self._writer, None
            if writer is not None:
                self.hooks.forsake()
                with contextlib.suppress(apsw.Error):  # every commit is in the log
                    writer.close()

    def after_fork_in_parent(self) -> None:
        """Go on; the next write opens the file again."""
        if self._is_quiet:
            self.lock.release()
            self._readers.resume()

    def after_fork_in_child(self) -> None:
        """Start with new locks: threads of the parent hold the inherited ones."""
        writer = self._writer
        self._begin()
        if self.is_in_memory:
            self._writer = writer
        if not self._is_quiet:
            # A transaction of the parent was inherited half-way: do not touch it.
            self._closed = True
