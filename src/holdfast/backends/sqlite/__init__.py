"""Holdfast's default backend: one SQLite file, or a private database in memory.

One connection writes; concurrent callers share its transactions, so that they share
the fsync. Readers have connections of their own. All of it is blocking: the async door
calls it from worker threads.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

import apsw

from holdfast._port import (
    Admission,
    Adoption,
    Backend,
    Facts,
    Indexing,
    Inspection,
    Key,
    Outcome,
    Prune,
    Pruned,
    Query,
    Receipt,
    Write,
)
from holdfast._values.records import Change, Page, Run, Segment
from holdfast.backends.sqlite._adopt import admit, adopt
from holdfast.backends.sqlite._connection import (
    FORMAT,
    MEMORY,
    Durability,
    check_guarded,
    check_whole,
    connect,
    identify,
    page_checksums,
    prepare,
    transaction,
    translated,
)
from holdfast.backends.sqlite._group_commit import CommitQueue, Ticket, commit_tickets
from holdfast.backends.sqlite._inspection import SqliteInspection
from holdfast.backends.sqlite._maintenance import (
    check_file,
    copy_file,
    make_private,
    shrink,
    shrink_unchecked,
    sync_file,
)
from holdfast.backends.sqlite._read import (
    read_changes,
    read_one,
    read_page,
    read_segments,
)
from holdfast.backends.sqlite._readers import Readers
from holdfast.backends.sqlite._search import (
    UNUSED,
    can_search,
    drop,
    explained,
    is_damaged,
    write_index,
)
from holdfast.backends.sqlite._statements import rows
from holdfast.backends.sqlite._write import Pruning
from holdfast.backends.sqlite._writer_queue import Turnstile
from holdfast.errors import (
    Busy,
    Closed,
    Conflict,
    Corrupt,
    HoldfastError,
    NotFound,
    Unsupported,
)

R = TypeVar("R")

ABILITIES = frozenset({"backup", "compact"} | ({"search"} if can_search() else set()))
POLL_SECONDS = 0.02
# Of a turn's 1.5 kB, 4 kB pages hold two and waste a quarter; 8 kB pages hold five.
# Compressed segments are small enough for small pages.
PAGE, SMALL_PAGE = 8192, 4096

_open_backends: weakref.WeakSet[SqliteBackend] = weakref.WeakSet()


class SqliteBackend:
    """The port over one SQLite file."""

    blocking = True
    abilities = ABILITIES

    def __init__(
        self,
        path: str,
        *,
        read_only: bool = False,
        durability: Durability = "full",
        busy_timeout: float = 5.0,
        compress: bool = False,
        vfs: str | None = None,
    ) -> None:
        self.path = path
        self._read_only = read_only
        self._durability: Durability = durability
        self._busy_timeout = busy_timeout
        self._page_size = SMALL_PAGE if compress else PAGE
        self._vfs = vfs or page_checksums()
        self._turnstile = Turnstile(f"{path}-lock", busy_timeout)
        self._closed = False
        self._quiet = True
        self._begin()
        try:
            with translated(path):
                self._open()
        except BaseException:
            self._turnstile.close()
            raise
        _open_backends.add(self)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._commits = CommitQueue(self._commit_tickets)
        self._readers = Readers(lambda: self._connect(read_only=True))
        self._writer: apsw.Connection | None = None

    def _open(self) -> None:
        if self._read_only:
            self._open_for_reading()
            return
        # Whoever opens a file before another has set it up would not know that its
        # pages carry checksums: one after the other.
        with self._queue():
            db = self._connect(read_only=False)
            try:
                check_whole(db, self.path)
                prepare(db, self.path, self._durability, self._page_size)
            except BaseException:
                db.close()
                raise
        self._writer = db

    def _open_for_reading(self) -> None:
        if not os.path.exists(self.path):
            raise NotFound(f"{self.path} does not exist; open it for writing first")
        with self._reading() as db:
            check_whole(db, self.path)
            if identify(db, self.path) != FORMAT:
                raise Unsupported(
                    f"{self.path} has an older format; open it for writing once"
                )
            check_guarded(db, self.path)

    async def ready(self) -> None:
        """Opening the file was enough."""

    # --- writing ----------------------------------------------------------------------

    async def commit(self, writes: Sequence[Write]) -> list[Receipt]:
        [outcome] = self.commit_each([writes])
        if isinstance(outcome, HoldfastError):
            raise outcome
        return outcome

    def commit_each(self, batches: Sequence[Sequence[Write]]) -> list[Outcome]:
        """Several commits, each with its own outcome, sharing one fsync."""
        return self._commits.submit(batches, self._busy_timeout)

    def _commit_tickets(self, tickets: list[Ticket]) -> None:
        """Commit for everybody who waits; each gets its receipts or its error."""
        try:
            self._exclusively(lambda db: commit_tickets(db, tickets, self._transaction))
        except HoldfastError as error:
            for ticket in tickets:
                if not ticket.done:
                    ticket.error = error

    async def prune(self, plan: Prune) -> Pruned:
        pruned = Pruned()

        def carry_out(db: apsw.Connection) -> None:
            nonlocal pruned
            with self._transaction(db):
                pruned = Pruning(db, plan.at).carry_out(plan)
                if plan.dry_run:
                    raise _DryRun

        with contextlib.suppress(_DryRun):
            self._exclusively(carry_out)
        return pruned

    async def index(self, updates: Sequence[Indexing]) -> None:
        self._exclusively(lambda db: write_index(db, updates))

    async def mend(self) -> bool:
        if self._read_only:
            return False
        with self._reading() as db:
            damaged = is_damaged(db)
        if damaged:
            self._exclusively(drop)
        return damaged

    async def adopt(self, adoption: Adoption) -> None:
        def take_over(db: apsw.Connection) -> None:
            with self._transaction(db):
                adopt(db, adoption)

        self._exclusively(take_over)

    async def admit(self, admission: Admission) -> None:
        def take_in(db: apsw.Connection) -> None:
            with self._transaction(db):
                admit(db, admission)

        self._exclusively(take_in)

    async def compact(self) -> None:
        await self.mend()
        try:
            self._exclusively(shrink)
        except Corrupt:
            # A page that nothing uses is no reason to give up: the file is written
            # anew without it, once all others were found to be sound.
            if set(await self.check()) - {UNUSED}:
                raise
            self._exclusively(shrink_unchecked)

    def _exclusively(self, work: Callable[[apsw.Connection], R]) -> R:
        """Do something with the writing connection, alone."""
        if not self._lock.acquire(timeout=self._busy_timeout):
            raise Busy(f"{self.path} is being written to; retry, or raise busy_timeout")
        try:
            with translated(self.path):
                db = self._writing()
                if db.in_transaction:  # whoever began it was interrupted
                    db.execute("rollback")
                with self._queue():
                    return work(db)
        finally:
            self._lock.release()

    def _transaction(self, db: apsw.Connection) -> transaction:
        """Whatever changes records does so in one of these."""
        return transaction(db)

    def _queue(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext() if self.path == MEMORY else self._turnstile

    def _writing(self) -> apsw.Connection:
        if self._closed:
            raise Closed
        if self._writer is None:
            if self._read_only:
                raise Unsupported(
                    f"{self.path} is open for reading only", code="read_only"
                )
            self._open()
        assert self._writer is not None
        return self._writer

    # --- reading ----------------------------------------------------------------------

    async def read(self, keys: Sequence[Key[R]]) -> list[R | None]:
        with self._reading() as db:
            return [read_one(db, key) for key in keys]

    async def segments(self, family: int, runs: Sequence[Run]) -> list[Segment]:
        with self._reading() as db:
            return read_segments(db, family, runs)

    async def scan(self, query: Query[R]) -> Page[R]:
        with self._reading() as db:
            return read_page(db, query)

    async def changes(self, after: int, limit: int, timeout: float) -> Page[Change]:
        deadline = time.monotonic() + timeout
        while True:
            with self._reading() as db:
                page = read_changes(db, after, limit)
            remaining = deadline - time.monotonic()
            if page or remaining <= 0:
                return page
            time.sleep(min(POLL_SECONDS, remaining))

    @contextlib.contextmanager
    def _reading(self) -> Generator[apsw.Connection]:
        """A connection for one short read; ":memory:" has only the writer's."""
        if self._closed:
            raise Closed
        with translated(self.path):
            if self.path == MEMORY:
                with self._lock:
                    yield self._writing()
                return
            with self._readers.lend() as db:
                yield db

    def _connect(self, *, read_only: bool) -> apsw.Connection:
        return connect(
            self.path,
            read_only=read_only,
            busy_timeout=self._busy_timeout,
            vfs=None if self.path == MEMORY else self._vfs,
        )

    # --- lifecycle --------------------------------------------------------------------

    async def setting(self, name: str, value: bytes | None = None) -> bytes | None:
        if value is not None:

            def insert(db: apsw.Connection) -> None:
                with self._transaction(db):
                    rows(db, "insert_setting", name=name, value=value)

            self._exclusively(insert)
        with self._reading() as db:
            found = rows(db, "setting", name=name)
        return found[0][0] if found else None

    async def facts(self) -> Facts:
        with self._reading() as db:
            [counts] = rows(db, "facts")
        threads, checkpoints, segments, entries, logical, stored, file = counts
        return Facts(
            threads=threads,
            checkpoints=checkpoints,
            segments=segments,
            journal_entries=entries,
            logical_bytes=logical,
            stored_bytes=stored,
            file_bytes=file,
            format=FORMAT,
            abilities=ABILITIES,
        )

    async def inspect(self) -> Inspection:
        if self.path == MEMORY:
            return SqliteInspection(self._writing())
        self._readers.enter()
        try:
            with translated(self.path):
                db = self._connect(read_only=True)
                return SqliteInspection(db, private=True, on_close=self._readers.leave)
        except BaseException:
            self._readers.leave()
            raise

    async def check(self) -> list[str]:
        try:
            with self._reading() as db:
                found = check_file(db)
        except Corrupt as error:
            found = [str(error)]
        with self._reading() as db:
            return explained(db, found)

    async def backup(self, path: str) -> None:
        if os.path.exists(path):
            text = f"{path} exists; choose the name of a new file"
            raise Conflict(text, code="file_exists")
        part = f"{path}.{os.getpid()}-{time.monotonic_ns()}.part"
        make_private(part)
        try:
            await self._copy(part)
            sync_file(part)
            os.rename(part, path)
        except BaseException:
            os.unlink(part)
            raise
        sync_file(os.path.dirname(os.path.abspath(path)))

    async def _copy(self, path: str) -> None:
        vfs = None if self.path == MEMORY else self._vfs
        try:
            with self._reading() as db:
                copy_file(db, path, vfs)
        except Corrupt:
            if not await self.mend():
                raise
            os.truncate(path, 0)
            with self._reading() as db:
                copy_file(db, path, vfs)

    async def close(self) -> None:
        with self._lock, translated(self.path):
            self._closed = True
            writer, self._writer = self._writer, None
            self._turnstile.close()
            self._readers.close()
            if writer is not None:
                writer.close()

    def using(self, connection: object) -> Backend:
        """There is no transaction of a caller's to be part of."""
        kind = type(connection).__name__
        text = f"{self.path} cannot be used over a {kind}; PostgreSQL can"
        raise Unsupported(text)

    # --- forking ----------------------------------------------------------------------

    def before_fork(self) -> None:
        """Be in no transaction and have no file open, so that none is inherited."""
        self._quiet = self._readers.call_in(self._busy_timeout)
        if not self._quiet:
            return
        if not self._lock.acquire(timeout=self._busy_timeout):
            self._quiet = False
            self._readers.go_on()
            return
        if self.path != MEMORY:
            self._turnstile.abandon()
            writer, self._writer = self._writer, None
            if writer is not None:
                with contextlib.suppress(apsw.Error):  # what it said is in the log
                    writer.close()

    def after_fork_in_parent(self) -> None:
        """Go on; the next write opens the file again."""
        if self._quiet:
            self._lock.release()
            self._readers.go_on()

    def after_fork_in_child(self) -> None:
        """Begin anew, with locks that nobody else's thread holds."""
        writer = self._writer
        self._begin()
        if self.path == MEMORY:
            self._writer = writer
        if not self._quiet:
            # A transaction of the parent is inherited half-way: not to be touched.
            self._closed = True


class _DryRun(Exception):
    """Rolls a transaction back after counting."""


def _for_all_open(method: Callable[[SqliteBackend], None]) -> Callable[[], None]:
    def call() -> None:
        for backend in tuple(_open_backends):
            method(backend)

    return call


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_for_all_open(lambda backend: backend.before_fork()),
        after_in_parent=_for_all_open(lambda backend: backend.after_fork_in_parent()),
        after_in_child=_for_all_open(lambda backend: backend.after_fork_in_child()),
    )
