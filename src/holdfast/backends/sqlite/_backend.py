"""The port over one SQLite database."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import apsw

from holdfast._port import (
    Admission,
    Adoption,
    Backend,
    Facts,
    IndexBatch,
    Inspection,
    Key,
    Outcome,
    Outdated,
    Prune,
    Pruned,
    Query,
    Receipt,
    Wait,
    Write,
)
from holdfast._port import backend as port
from holdfast._values import os_errors
from holdfast._values.records import Change, Page, Run, Segment
from holdfast.backends.sqlite import (
    _adopt,
    _background,
    _maintenance,
    _search,
    _write,
)
from holdfast.backends.sqlite._acknowledged import Durability
from holdfast.backends.sqlite._connection import (
    FORMAT,
    can_search,
    check_guarded,
    check_whole,
    identify,
    page_checksums,
    remove_empty_log,
)
from holdfast.backends.sqlite._database import Database
from holdfast.backends.sqlite._group_commit import CommitQueue, Ticket
from holdfast.backends.sqlite._hooks import FileHooks, Hooks, Subject
from holdfast.backends.sqlite._read import (
    read_all,
    read_changes,
    read_page,
    read_segments,
)
from holdfast.backends.sqlite._statements import rows
from holdfast.errors import Conflict, Corrupt, FormatMismatch, NotFound, Unsupported

R = TypeVar("R")

ABILITIES = frozenset(
    {"backup", "compact", "pack", "reuse"} | ({"search"} if can_search() else set())
)
POLL_SECONDS = 0.02
# What can be done about a store that cannot be opened.
UNOPENED = "save the rest with holdfast.salvage(path, to), or go back to a backup"

_open_backends: weakref.WeakSet[SqliteBackend] = weakref.WeakSet()


def _do_nothing() -> None:
    pass


class SqliteBackend:
    """The port over one SQLite database.

    ``vfs`` is the SQLite VFS to use instead of the one with page checksums. ``hooks``
    replace those of a plain file: a backend that keeps a SQLite database as its index
    decides with them how that is opened, locked and changed. The options about the file
    are up to the hooks then.
    """

    blocking = True

    def __init__(
        self,
        path: str,
        *,
        read_only: bool = False,
        durability: Durability = "full",
        busy_timeout: float = 5.0,
        compress: bool = False,
        accept_loss: bool = False,
        vfs: str | None = None,
        hooks: Hooks | None = None,
    ) -> None:
        self._read_only = read_only
        # Whether a log that is there later was made by reading.
        self._makes_log = read_only and not (hooks or os.path.exists(f"{path}-wal"))
        self._compress = compress
        self._hooks = hooks or FileHooks(
            path,
            read_only=read_only,
            durability=durability,
            busy_timeout=busy_timeout,
            compress=compress,
            accept_loss=accept_loss,
        )
        self.database = Database(
            self._hooks, busy_timeout=busy_timeout, vfs=vfs or page_checksums()
        )
        self._read = self.database.read
        self._reading = self.database.reading
        self._exclusively = self.database.exclusively
        self._commits = CommitQueue(self.database)
        try:
            self._open()
        except BaseException:
            self._hooks.close()
            raise
        _open_backends.add(self)

    @property
    def abilities(self) -> frozenset[str]:
        """All abilities; without ``search`` if page checksums are ignored."""
        return ABILITIES - {"search"} if self.database.trusts_pages else ABILITIES

    @property
    def path(self) -> str:
        """The database file, or ":memory:"."""
        return self._hooks.path

    def _open(self) -> None:
        try:
            self.database.repairing(self._open_once)
        except Corrupt as error:
            if error.lost:
                raise
            raise Corrupt(error.what, error.detail, advice=UNOPENED) from error

    def _open_once(self) -> None:
        with self._hooks.errors():
            if self._read_only:
                self._open_for_reading()
            else:
                self.database.open()

    def _open_for_reading(self) -> None:
        if not os.path.exists(self.path):
            raise NotFound(f"{self.path} does not exist; open it for writing first")
        with self._reading() as db:
            check_whole(db, self.path)
            self._hooks.check_loss(db)
            found = identify(db, self.path)
            if found == 0:
                raise FormatMismatch(
                    f"{self.path} is empty, and not a Holdfast store; check the path,"
                    " or open it for writing to make it one"
                )
            if found != FORMAT:
                raise Unsupported(
                    f"{self.path} has an older format; open it for writing once"
                )
            check_guarded(db, self.path)

    async def ready(self) -> None:
        """Opening the file was enough."""

    # --- writing ----------------------------------------------------------------------

    async def commit(self, writes: Sequence[Write]) -> list[Receipt]:
        ticket = Ticket(writes)
        self._commits.make([ticket])
        if ticket.error is not None:
            raise ticket.error
        return ticket.receipts

    def commit_each(self, batches: Sequence[Sequence[Write]]) -> list[Outcome]:
        """Several commits, each with its own outcome, sharing one fsync."""
        return self._commits.submit(batches)

    async def prune(self, plan: Prune) -> Pruned:
        def carry_out(db: apsw.Connection) -> Pruned:
            pruned = _write.SqlitePrune(db, plan.at).carry_out(plan)
            if plan.dry_run:
                raise _DryRun(pruned)
            return pruned

        try:
            return self._change(carry_out, plan)
        except _DryRun as counted:
            return counted.pruned

    async def index(self, batch: IndexBatch) -> Wait | None:
        # In memory no batch can be read while another is written.
        if batch.threads and not (batch.is_last or self.database.is_in_memory):
            return _background.Background(partial(self._index, batch)).wait
        if self._index(batch):
            is_done = self._exclusively(lambda db: _search.merge(db, begin=True))
            while not is_done:
                is_done = self._exclusively(lambda db: _search.merge(db, begin=False))
            # Reads beside the batches needed another connection. Later searches do not,
            # and a lent one takes a tenth of their time.
            self.database.close_idle_readers()
        return None

    def _index(
        self, batch: IndexBatch, before_texts: Callable[[], None] = _do_nothing
    ) -> bool:
        return self._exclusively(
            lambda db: _search.write_index(db, batch, before_texts)
        )

    async def mend(self) -> bool:
        if self._read_only:
            return False
        damaged = self.database.read_apart(_search.is_damaged)
        if damaged:
            self._exclusively(_search.drop)
        return damaged

    async def adopt(self, adoption: Adoption) -> None:
        self._change(lambda db: _adopt.adopt(db, adoption))

    async def admit(self, admission: Admission) -> None:
        self._change(lambda db: _adopt.admit(db, admission))

    def _change(
        self, work: Callable[[apsw.Connection], R], subject: Subject = None
    ) -> R:
        """Do work in a transaction."""

        def change(db: apsw.Connection) -> R:
            with self._hooks.transaction(db) as cursor:
                result = work(db)
                last = _write.next_seq(cursor) - 1
            self._hooks.acknowledge(db, last)
            return result

        return self._exclusively(change, subject)

    async def compact(self) -> None:
        await self.mend()
        try:
            self._exclusively(partial(_maintenance.shrink, pack=self._compress))
        except Corrupt:
            # A damaged page that nothing uses does no harm: the file is written again
            # without it, once all other pages were found to be sound.
            if set(await self.check()) - {_search.UNUSED}:
                raise
            self._exclusively(
                partial(_maintenance.shrink_unchecked, pack=self._compress)
            )

    async def scrub(self) -> None:
        # `secure_delete` leaves copies of rows that SQLite once moved to another page,
        # and the log has what was there before. Only a new file has none of it.
        await self.compact()

    # --- reading ----------------------------------------------------------------------

    async def read(self, keys: Sequence[Key[R]]) -> list[R | None]:
        return self._read(lambda db: read_all(db, keys))

    async def segments(self, family: int, runs: Sequence[Run]) -> list[Segment]:
        return self._read(lambda db: read_segments(db, family, runs))

    async def scan(self, query: Query[R]) -> Page[R]:
        if isinstance(query, Outdated) and self._read_only:
            return Page(())
        return self._read(lambda db: read_page(db, query))

    async def changes(self, after: int, limit: int, timeout: float) -> Page[Change]:
        deadline = time.monotonic() + timeout
        while True:
            page = self.database.read_apart(lambda db: read_changes(db, after, limit))
            remaining = deadline - time.monotonic()
            if page or remaining <= 0:
                return page
            time.sleep(min(POLL_SECONDS, remaining))

    # --- lifecycle --------------------------------------------------------------------

    async def setting(
        self, name: str, value: bytes | None = None, *, replace: bool = False
    ) -> bytes | None:
        if value is not None:
            store = "replace_setting" if replace else "insert_setting"
            self._change(lambda db: rows(db, store, name=name, value=value))
        found = self._read(lambda db: rows(db, "setting", name=name))
        return found[0][0] if found else None

    async def facts(self) -> Facts:
        [counts] = self.database.read_apart(lambda db: rows(db, "facts"))
        threads, checkpoints, segments, entries, logical, stored, file = counts
        return port.Facts(
            threads=threads,
            checkpoints=checkpoints,
            segments=segments,
            journal_entries=entries,
            logical_bytes=logical,
            stored_bytes=stored,
            file_bytes=file,
            format=FORMAT,
            abilities=self.abilities,
        )

    async def inspect(self) -> Inspection:
        return self.database.inspect()

    async def check(self) -> list[str]:
        try:
            found = self.database.read_apart(_maintenance.check_file)
        except Corrupt as error:
            found = [str(error)]
        with self._reading() as db:
            return _search.explained(db, found)

    async def backup(self, path: str) -> None:
        if os.path.lexists(path):
            text = f"{path} exists; choose the name of a new file"
            raise Conflict(text, code="file_exists")
        part = f"{path}.{os.getpid()}-{time.monotonic_ns()}.part"
        _maintenance.make_private(part)
        try:
            with os_errors.writing(path):
                await self._copy(part)
                _maintenance.sync_file(part)
                os.rename(part, path)
                _maintenance.sync_file(os.path.dirname(os.path.abspath(path)))
        except BaseException:
            _maintenance.remove_new(part, path)
            raise

    async def _copy(self, path: str) -> None:
        vfs = self.database.vfs
        try:
            self.database.read_apart(lambda db: _maintenance.copy_file(db, path, vfs))
        except Corrupt:
            if not await self.mend():
                raise
            os.truncate(path, 0)
            self.database.read_apart(lambda db: _maintenance.copy_file(db, path, vfs))

    async def close(self) -> None:
        self.database.close()
        if self._makes_log:
            remove_empty_log(self.path, self.database.vfs)

    def using(self, connection: object) -> Backend:
        """SQLite cannot take part in a transaction of the caller's connection."""
        kind = type(connection).__name__
        text = f"{self.path} cannot be used over a {kind}; PostgreSQL can"
        raise Unsupported(text)

    def after_fork_in_child(self) -> None:
        """Start with new locks and an empty queue: no thread of the parent is here."""
        self.database.after_fork_in_child()
        self._commits = CommitQueue(self.database)


class _DryRun(Exception):
    """Rolls a transaction back after counting."""

    def __init__(self, pruned: Pruned) -> None:
        self.pruned = pruned


def _for_all_open(call: Callable[[SqliteBackend], None]) -> Callable[[], None]:
    def call_all() -> None:
        for backend in tuple(_open_backends):
            call(backend)

    return call_all


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_for_all_open(lambda b: b.database.before_fork()),
        after_in_parent=_for_all_open(lambda b: b.database.after_fork_in_parent()),
        after_in_child=_for_all_open(lambda b: b.after_fork_in_child()),
    )
