"""The port over a folder: what the index says, once it says what the files say."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar, cast

import apsw
from msgspec.structs import replace

from holdfast._port import Facts, Inspection, Key, Prune, Pruned, Query, StateKey
from holdfast._values.records import Change, Checkpoint, Page, Run, Segment
from holdfast.backends._sql.conflicts import stale_plan
from holdfast.backends.directory import _catalog, _scope
from holdfast.backends.directory._backup import Replaced, copy_files, new_folder
from holdfast.backends.directory._catalog import File
from holdfast.backends.directory._check import FolderInspection, check_files
from holdfast.backends.directory._index import Index
from holdfast.backends.directory._line_parts import is_compact
from holdfast.backends.directory._open import FORMAT
from holdfast.backends.directory._scope import EVERYTHING, Target
from holdfast.backends.sqlite import SqliteBackend
from holdfast.errors import Corrupt

R = TypeVar("R")

POLL_SECONDS = 0.02
# How often a copy is begun before those who write have to wait for it.
COPIES = 5


class DirectoryBackend(Index):
    """The port over a folder.

    Every request looks first at the files it is about, so that it sees what people,
    editors and Git have done to them.
    """

    # --- reading ----------------------------------------------------------------------

    async def read(self, keys: Sequence[Key[R]]) -> list[R | None]:
        async def answer() -> list[R | None]:
            return await SqliteBackend.read(self, self._certain(keys))

        return await self._answered(_scope.of_keys(keys), answer)

    async def segments(self, family: int, runs: Sequence[Run]) -> list[Segment]:
        async def answer() -> list[Segment]:
            return await SqliteBackend.segments(self, family, runs)

        return await self._answered(_scope.family(family), answer)

    async def scan(self, query: Query[R]) -> Page[R]:
        async def answer() -> Page[R]:
            return await SqliteBackend.scan(self, query)

        return await self._answered(_scope.of_query(query), answer)

    async def changes(self, after: int, limit: int, timeout: float) -> Page[Change]:
        async def answer() -> Page[Change]:
            return await SqliteBackend.changes(self, after, limit, 0.0)

        deadline = time.monotonic() + timeout
        while True:
            page = await self._answered(EVERYTHING, answer)
            remaining = deadline - time.monotonic()
            if page or remaining <= 0:
                return page
            time.sleep(min(POLL_SECONDS, remaining))

    async def _answered(self, target: Target, answer: Callable[[], Awaitable[R]]) -> R:
        """The answer of the index; one that is damaged is made anew first."""
        path = self.path
        try:
            self.look(target)
            return await answer()
        except Corrupt as error:
            if error.what != path:
                raise
        self.renew(path)
        self.look(target)
        return await answer()

    def _certain(self, keys: Sequence[Key[R]]) -> Sequence[Key[R]]:
        """Keys that do not rely on numbers, once files were replaced."""
        if not self.is_replaced:
            return keys
        # The same keys; only what may be left out of their answers differs.
        return [
            cast("Key[R]", replace(key, known=None))
            if isinstance(key, StateKey)
            else key
            for key in keys
        ]

    # --- writing ----------------------------------------------------------------------

    async def prune(self, plan: Prune) -> Pruned:
        self._refuse_replaced(plan)
        return await super().prune(plan)

    def _refuse_replaced(self, plan: Prune) -> None:
        """A number in a plan must still be that of the same checkpoint."""
        self.look(_scope.NOTHING)
        if self.is_replaced:
            with self._reading() as db:
                for checkpoint in _checkpoints_in(plan):
                    if not _scope.is_known(db, checkpoint):
                        raise stale_plan()

    async def compact(self) -> None:
        """Write files anew that say more than is there now, and shrink the index."""
        self.look(EVERYTHING)
        for family in self._families():
            self.rewrite(family)
        await super().compact()

    def _families(self) -> list[int]:
        found: list[File] = []
        with self._reading() as db, db:  # one view of the index for all statements
            files = _catalog.all_files(db).values()
            found += (file for file in files if not is_compact(db, file))
        return [file.family for file in found if file.family]

    # --- lifecycle --------------------------------------------------------------------

    async def setting(self, name: str, value: bytes | None = None) -> bytes | None:
        async def answer() -> bytes | None:
            return await SqliteBackend.setting(self, name, value)

        return await self._answered(_scope.family(0), answer)

    async def facts(self) -> Facts:
        async def answer() -> Facts:
            return await SqliteBackend.facts(self)

        facts = await self._answered(EVERYTHING, answer)
        with self.folder.translated():
            size = sum(seen.size for seen in self.folder.listing().values())
        return replace(facts, file_bytes=facts.file_bytes + size, format=FORMAT)

    async def inspect(self) -> Inspection:
        self.catch_up()
        inspection = await super().inspect()
        with self._reading() as db:
            return FolderInspection(inspection, _catalog.problems(db))

    async def check(self) -> list[str]:
        """What is wrong with the index, or with a file, or differs between them."""
        self.catch_up()
        found = await super().check()
        if found and not self._read_only:
            self.renew(self.path)
            found = await super().check()
        with self.folder.translated(), self._reading() as db:
            return found + check_files(db, self.folder)

    async def backup(self, path: str) -> None:
        """A consistent copy in a new folder while others go on writing."""
        self.look(EVERYTHING)
        with self.folder.translated(), new_folder(path) as part:
            for _ in range(COPIES):
                with contextlib.suppress(Replaced):
                    copy_files(self.folder, self._known_files(), part)
                    break
            else:
                self._exclusively(lambda db: self._copy_all(db, part))
        self.folder.files.sync_folder(os.path.dirname(os.path.abspath(path)))

    def _copy_all(self, db: apsw.Connection, target: str) -> None:
        copy_files(self.folder, _catalog.all_files(db).values(), target)

    def _known_files(self) -> list[File]:
        with self._reading() as db:
            return list(_catalog.all_files(db).values())


def _checkpoints_in(plan: Prune) -> Iterable[Checkpoint]:
    for family in plan.families:
        yield from family.checkpoints
        yield from (relink.child for relink in family.relinks)
