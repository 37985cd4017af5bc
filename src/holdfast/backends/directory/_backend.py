"""The port over a folder: what the index says, once it says what the files say."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar, cast

import apsw
from msgspec.structs import replace

from holdfast._port import (
    Admission,
    Adoption,
    Backend,
    Facts,
    Horizon,
    IndexBatch,
    Inspection,
    Key,
    Outcome,
    Prune,
    Pruned,
    Query,
    Receipt,
    StateKey,
    Wait,
    Write,
)
from holdfast._values.records import Change, Checkpoint, Page, Run, Segment
from holdfast.backends._sql.conflicts import stale_plan
from holdfast.backends.directory import _catalog, _scope
from holdfast.backends.directory._backup import FileReplaced, copy_files, new_folder
from holdfast.backends.directory._catalog import IndexedFile
from holdfast.backends.directory._check import FolderInspection, check_files
from holdfast.backends.directory._folder import Folder
from holdfast.backends.directory._index import FileIndex
from holdfast.backends.directory._line_parts import is_compact
from holdfast.backends.directory._open import FORMAT
from holdfast.backends.directory._pending_view import PendingView
from holdfast.backends.directory._read_only import MemoryIndex
from holdfast.backends.directory._scope import EVERYTHING, FolderScope
from holdfast.backends.directory._sync import compare
from holdfast.backends.directory._transaction import FolderTransaction
from holdfast.backends.sqlite import ABILITIES, SqliteBackend, snapshot
from holdfast.errors import Corrupt, HoldfastError

R = TypeVar("R")

POLL_SECONDS = 0.02
# How often a copy is tried before writers have to wait for it.
COPIES = 5


class DirectoryBackend:
    """The port over a folder.

    Its index is a `SqliteBackend`, which answers every request and makes every change.
    A request first looks at the files it is about, so that it sees what people, editors
    and Git have done to them. An index that turns out to be damaged is made again from
    the files, and the request is repeated. If the disk is too full to bring the index
    up to date, reads are answered from an index in memory.
    """

    blocking = True
    abilities = ABILITIES - {"pack", "reuse"}

    def __init__(
        self, index: FileIndex | MemoryIndex, *, busy_timeout: float, vfs: str | None
    ) -> None:
        self._index = index
        self._folder = index.folder
        self._sql = SqliteBackend(
            index.path, busy_timeout=busy_timeout, vfs=vfs, hooks=index
        )
        self.database = self._sql.database
        self._open_in_memory = partial(_in_memory, index.folder, busy_timeout, vfs)
        self._spare: DirectoryBackend | None = None
        # Whether files were replaced since this was opened: then a number may mean
        # another checkpoint.
        self._is_replaced = False

    async def ready(self) -> None:
        """Opening the folder was enough."""

    # --- looking at the files ---------------------------------------------------------

    def _look(self, scope: FolderScope) -> None:
        """Be up to date with the files a request is about, and refuse damaged ones.

        While another process changes files, its changes do not count yet.
        """
        if not self._index.exists():
            self.database.exclusively(lambda _: None)  # it is made before a write
        with self.database.reading() as db:
            if self._is_up_to_date(db, scope):
                return
        self._index.catch_up(self.database, scope)
        with self.database.reading() as db:
            _scope.guard(db, scope)
            self._note_epoch(_catalog.folder_state(db).epoch)

    def _is_up_to_date(self, db: apsw.Connection, scope: FolderScope) -> bool:
        if self._folder.is_unfinished:
            return False
        epoch = _scope.is_as_known(db, self._folder, scope)
        if epoch is None:
            families = _scope.families_of(db, scope).families
            if compare(db, self._folder, families):
                return False
            _scope.guard(db, scope)
            epoch = _catalog.folder_state(db).epoch
        self._note_epoch(epoch)
        return True

    def _note_epoch(self, epoch: int) -> None:
        self._is_replaced = epoch != self._index.epoch

    async def _answer(
        self, scope: FolderScope, ask: Callable[[Backend], Awaitable[R]]
    ) -> R:
        """The answer of the index once it is up to date."""
        return await self._unless_full(lambda: self._ask_index(scope, ask), ask)

    async def _ask_index(
        self, scope: FolderScope, ask: Callable[[Backend], Awaitable[R]]
    ) -> R:
        path = self._index.path
        try:
            self._look(scope)
            return await ask(self._sql)
        except Corrupt as error:
            self._renew(error, path)
        self._look(scope)
        return await ask(self._sql)

    async def _unless_full(
        self,
        ask: Callable[[], Awaitable[R]],
        instead: Callable[[DirectoryBackend], Awaitable[R]],
    ) -> R:
        """An answer; if the disk is too full for it, that of an index in memory."""
        try:
            found = await ask()
        except HoldfastError as error:
            if error.code != "disk_full" or self._index.is_read_only:
                raise
            self._is_replaced = True  # its numbers are those of the files now
            spare = self._spare = self._spare or self._open_in_memory()
            return await instead(spare)
        # Not closed: another thread may be reading from it.
        self._spare = None
        return found

    async def _retry(self, ask: Callable[[], Awaitable[R]]) -> R:
        """The answer of the index; a damaged one is made again first."""
        path = self._index.path
        try:
            return await ask()
        except Corrupt as error:
            self._renew(error, path)
        return await ask()

    def _renew(self, error: Corrupt, path: str) -> None:
        if error.what != path:
            raise error
        self._index.renew(self.database, path)

    # --- reading ----------------------------------------------------------------------

    async def read(self, keys: Sequence[Key[R]]) -> list[R | None]:
        scope = _scope.of_keys(keys)
        return await self._answer(scope, lambda sql: sql.read(self._certain(keys)))

    async def segments(self, family: int, runs: Sequence[Run]) -> list[Segment]:
        scope = _scope.family(family)
        return await self._answer(scope, lambda sql: sql.segments(family, runs))

    async def scan(self, query: Query[R]) -> Page[R]:
        if isinstance(query, Horizon):
            # A file from elsewhere may bring lower numbers at any time.
            return cast("Page[R]", Page((0,)))
        scope = _scope.of_query(query)
        return await self._answer(scope, lambda sql: sql.scan(query))

    async def changes(self, after: int, limit: int, timeout: float) -> Page[Change]:
        def ask(sql: Backend) -> Awaitable[Page[Change]]:
            return sql.changes(after, limit, 0.0)

        deadline = time.monotonic() + timeout
        while True:
            page = await self._answer(EVERYTHING, ask)
            remaining = deadline - time.monotonic()
            if page or remaining <= 0:
                return page
            time.sleep(min(POLL_SECONDS, remaining))

    def _certain(self, keys: Sequence[Key[R]]) -> Sequence[Key[R]]:
        """Keys that do not rely on numbers, once files were replaced."""
        if not self._is_replaced:
            return keys
        # The same keys; only what may be left out of their answers differs.
        return [
            cast("Key[R]", replace(key, known=None))
            if isinstance(key, StateKey)
            else key
            for key in keys
        ]

    # --- writing ----------------------------------------------------------------------

    async def commit(self, writes: Sequence[Write]) -> list[Receipt]:
        path = self._index.path
        try:
            return await self._sql.commit(writes)
        except Corrupt as error:
            self._renew(error, path)
        return await self._sql.commit(writes)

    def commit_each(self, batches: Sequence[Sequence[Write]]) -> list[Outcome]:
        path = self._index.path
        outcomes = self._sql.commit_each(batches)
        for number, outcome in enumerate(outcomes):
            if isinstance(outcome, Corrupt) and outcome.what == path:
                self._index.renew(self.database, path)
                [outcomes[number]] = self._sql.commit_each([batches[number]])
        return outcomes

    async def prune(self, plan: Prune) -> Pruned:
        self._refuse_replaced(plan)
        return await self._retry(lambda: self._sql.prune(plan))

    def _refuse_replaced(self, plan: Prune) -> None:
        """A number in a plan must still be that of the same checkpoint."""
        self._look(_scope.NOTHING)
        if self._is_replaced:
            with self.database.reading() as db:
                for checkpoint in _checkpoints_in(plan):
                    if not _scope.is_known(db, checkpoint):
                        raise stale_plan()

    async def index(self, batch: IndexBatch) -> Wait | None:
        return await self._retry(lambda: self._sql.index(batch))

    async def mend(self) -> bool:
        if self._index.is_read_only:
            return False
        return await self._retry(self._sql.mend)

    async def adopt(self, adoption: Adoption) -> None:
        await self._retry(lambda: self._sql.adopt(adoption))

    async def admit(self, admission: Admission) -> None:
        await self._retry(lambda: self._sql.admit(admission))

    async def compact(self) -> None:
        """Write files again without older lines, and shrink the index."""
        await self._retry(self._compact)

    async def scrub(self) -> None:
        """Shrink the index: files that lost something were written again by then."""
        await self._retry(self._sql.scrub)

    async def _compact(self) -> None:
        self._look(EVERYTHING)
        for family in self._families():
            self._rewrite(family)
        await self._sql.compact()

    def _families(self) -> list[int]:
        found: list[IndexedFile] = []
        with self.database.reading() as db, snapshot(db):
            files = _catalog.all_files(db).values()
            found += (file for file in files if not is_compact(db, file))
        return [file.family for file in found if file.family]

    def _rewrite(self, family: int) -> None:
        """Write the file of a family again, without what was replaced since."""

        def rewrite(db: apsw.Connection) -> None:
            self._index.update(db, _scope.family(family))
            with FolderTransaction(db, self._folder, [family]):
                pass

        self.database.exclusively(rewrite, ())

    # --- lifecycle --------------------------------------------------------------------

    async def setting(
        self, name: str, value: bytes | None = None, *, replace: bool = False
    ) -> bytes | None:
        if value is not None:
            self._look(_scope.family(0))
            await self._retry(lambda: self._sql.setting(name, value, replace=replace))
        return await self._answer(_scope.family(0), lambda sql: sql.setting(name))

    async def facts(self) -> Facts:
        facts = await self._answer(EVERYTHING, lambda sql: sql.facts())
        with self._index.errors():
            size = sum(stamp.size for stamp in self._folder.listing().values())
        return replace(facts, file_bytes=facts.file_bytes + size, format=FORMAT)

    async def inspect(self) -> Inspection:
        return await self._unless_full(self._inspect, lambda spare: spare.inspect())

    async def _inspect(self) -> Inspection:
        self._index.catch_up(self.database, EVERYTHING)
        inspection = await self._sql.inspect()
        with self.database.reading() as db:
            return FolderInspection(inspection, _catalog.problems(db))

    async def check(self) -> list[str]:
        """The problems of the index, of the files, and the differences between them."""
        return await self._unless_full(self._check, lambda spare: spare.check())

    async def _check(self) -> list[str]:
        self._index.catch_up(self.database, EVERYTHING)
        found = await self._sql.check()
        if found and not self._index.is_read_only:
            self._index.renew(self.database, self._index.path)
            found = await self._sql.check()
        with self.database.reading() as db:
            return found + check_files(db, self._folder)

    async def backup(self, path: str) -> None:
        """A consistent copy in a new folder while others go on writing."""
        self._look(EVERYTHING)
        files = self._folder.files
        with self._index.errors(), new_folder(path, files) as part:
            for _ in range(COPIES):
                with contextlib.suppress(FileReplaced):
                    copy_files(self._folder, self._known_files(), part)
                    break
            else:
                self.database.exclusively(lambda db: self._copy_all(db, part))

    def _copy_all(self, db: apsw.Connection, target: str) -> None:
        copy_files(self._folder, _catalog.all_files(db).values(), target)

    def _known_files(self) -> list[IndexedFile]:
        with self.database.reading() as db:
            return list(_catalog.all_files(db).values())

    def using(self, connection: object) -> Backend:
        return self._sql.using(connection)

    async def close(self) -> None:
        await self._sql.close()
        if self._spare is not None:
            await self._spare.close()


def _in_memory(
    folder: Folder, busy_timeout: float, vfs: str | None
) -> DirectoryBackend:
    """The same folder, to be read without writing anything."""
    view = PendingView(folder.path, folder.files, busy_timeout)
    index = MemoryIndex(view, vfs)
    return DirectoryBackend(index, busy_timeout=busy_timeout, vfs=vfs)


def _checkpoints_in(plan: Prune) -> Iterable[Checkpoint]:
    for family in plan.families:
        yield from family.checkpoints
        yield from (relink.child for relink in family.relinks)
