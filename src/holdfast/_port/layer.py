"""A layer: a class that takes a backend and is a backend."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Self, TypeVar, cast

from msgspec.structs import replace

from holdfast._port.backend import (
    Backend,
    BlockingBackend,
    Facts,
    HeadId,
    Inspection,
    Place,
    Portion,
    Rescued,
)
from holdfast._port.plans import Admission, Adoption, IndexBatch, Prune, Pruned, Wait
from holdfast._port.queries import Query
from holdfast._port.reads import Key
from holdfast._port.writes import Outcome, Receipt, Write
from holdfast._values.records import (
    Change,
    Checkpoint,
    Entry,
    Page,
    Run,
    Segment,
    ThreadRecord,
)

R = TypeVar("R")


class Layer:
    """Passes every verb of the port on to the backend below it, ``backend``.

    A subclass overrides the verbs that it counts, traces, delays or changes. Every verb
    is written out here, so that a new verb of the port cannot bypass a layer unseen.
    Layers can be stacked: ``Counting(Encrypting(SqliteBackend(path)))``.
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # The sync API saves with one of the two and the async API with the other. If a
        # layer overrides only one, it misses half of the saves.
        if ("commit" in vars(cls)) is not ("commit_each" in vars(cls)):
            text = f"{cls.__name__} must override commit and commit_each together"
            raise TypeError(text)

    def over(self, backend: Backend) -> Self:
        """The same layer over another backend; `using` needs it.

        It shares the attributes of this one. State that changes, such as counts, has to
        be in an object that both refer to, for example a `collections.Counter`.
        """
        other = copy.copy(self)
        other.backend = backend
        return other

    @property
    def blocking(self) -> bool:
        return self.backend.blocking

    @property
    def abilities(self) -> frozenset[str]:
        return self.backend.abilities

    async def ready(self) -> None:
        await self.backend.ready()

    async def commit(self, writes: Sequence[Write]) -> list[Receipt]:
        return await self.backend.commit(writes)

    def commit_each(self, batches: Sequence[Sequence[Write]]) -> Sequence[Outcome]:
        if not batches:  # a layer may have refused all of them
            return []
        # Called over a blocking backend only, which the type of ``backend`` cannot say.
        return cast("BlockingBackend", self.backend).commit_each(batches)

    async def read(self, keys: Sequence[Key[R]]) -> list[R | None]:
        return await self.backend.read(keys)

    async def segments(self, family: int, runs: Sequence[Run]) -> list[Segment]:
        return await self.backend.segments(family, runs)

    async def scan(self, query: Query[R]) -> Page[R]:
        return await self.backend.scan(query)

    async def prune(self, plan: Prune) -> Pruned:
        return await self.backend.prune(plan)

    async def changes(self, after: int, limit: int, timeout: float) -> Page[Change]:
        return await self.backend.changes(after, limit, timeout)

    async def setting(
        self, name: str, value: bytes | None = None, *, replace: bool = False
    ) -> bytes | None:
        return await self.backend.setting(name, value, replace=replace)

    async def index(self, batch: IndexBatch) -> Wait | None:
        return await self.backend.index(batch)

    async def mend(self) -> bool:
        return await self.backend.mend()

    async def adopt(self, adoption: Adoption) -> None:
        await self.backend.adopt(adoption)

    async def admit(self, admission: Admission) -> None:
        await self.backend.admit(admission)

    async def facts(self) -> Facts:
        return replace(await self.backend.facts(), abilities=self.abilities)

    async def inspect(self) -> Inspection:
        return await self.backend.inspect()

    async def check(self) -> list[str]:
        return await self.backend.check()

    async def compact(self) -> None:
        await self.backend.compact()

    async def scrub(self) -> None:
        await self.backend.scrub()

    async def backup(self, path: str) -> None:
        await self.backend.backup(path)

    def using(self, connection: object) -> Self:
        """The same layer over the backend below on a caller's connection."""
        return self.over(self.backend.using(connection))

    async def close(self) -> None:
        await self.backend.close()


class InspectionLayer:
    """Passes every call on to the view below it, ``inspection``.

    A subclass overrides what it changes.
    """

    def __init__(self, inspection: Inspection) -> None:
        self.inspection = inspection

    def moment(self) -> AbstractAsyncContextManager[None]:
        return self.inspection.moment()

    async def families(
        self, numbers: Sequence[int], *, heads_only: bool = False
    ) -> Rescued:
        return await self.inspection.families(numbers, heads_only=heads_only)

    async def threads(self, after: Place) -> Portion[ThreadRecord]:
        return await self.inspection.threads(after)

    async def checkpoints(self, after: Place) -> Portion[Checkpoint]:
        return await self.inspection.checkpoints(after)

    async def saves(self, after: Place) -> Portion[Checkpoint]:
        return await self.inspection.saves(after)

    async def heads(self, after: Place) -> Portion[HeadId]:
        return await self.inspection.heads(after)

    async def entries(self, after: Place) -> Portion[Entry]:
        return await self.inspection.entries(after)

    async def headed_by(self, lost: Sequence[int]) -> list[str]:
        return await self.inspection.headed_by(lost)

    async def checkpoint(self, family: int, id_: str) -> Checkpoint | None:
        return await self.inspection.checkpoint(family, id_)

    async def segments(
        self, wanted: Sequence[tuple[int, Run]]
    ) -> list[list[Segment | None]]:
        return await self.inspection.segments(wanted)

    async def count_checkpoints(self) -> int:
        return await self.inspection.count_checkpoints()

    async def count_saved(self, family: int, up_to: int) -> int:
        return await self.inspection.count_saved(family, up_to)

    async def count_segments(self, families: Sequence[int]) -> list[int]:
        return await self.inspection.count_segments(families)

    async def count_strays(self) -> int:
        return await self.inspection.count_strays()

    async def close(self) -> None:
        await self.inspection.close()
