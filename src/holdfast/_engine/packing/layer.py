"""The layer that stores segments packed; above it there are only single, plain ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, Self, TypeVar

import msgspec
from msgspec.structs import replace

from holdfast._engine.packing.forms import Form, zstd
from holdfast._engine.packing.joining import Joiner
from holdfast._engine.packing.reading import OpenedInspection, Reader
from holdfast._port import (
    Admission,
    Adoption,
    Backend,
    Inspection,
    Key,
    Outcome,
    Pieces,
    Prune,
    Pruned,
    Receipt,
    SegmentsKey,
    Stored,
    Write,
    run,
)
from holdfast._port.layer import Layer
from holdfast._values.records import PLAIN, Run, Segment
from holdfast._values.runs import state_runs
from holdfast.errors import HoldfastError

R = TypeVar("R")


class Growth(msgspec.Struct, frozen=True):
    """After how many segments a value that grows is joined, and joined again."""

    few: int
    many: int


# To compress, soon, and again when most blocks are as large as they should be.
TO_COMPRESS: Final = Growth(16, 128)
# Joined once, so that a load has less to decrypt: each message is written twice. Plain
# segments are not joined: blocks of them are read no faster and are no smaller.
TO_DECRYPT: Final = Growth(96, 96)


class Packing(Layer):
    """Compresses segments if asked to, and joins those that are cold into blocks."""

    def __init__(
        self,
        backend: Backend,
        *,
        compress: bool,
        encrypted: bool = False,
        joins_grown: bool = True,
    ) -> None:
        super().__init__(backend)
        if compress:
            zstd()  # refuses a store that could not be written to
        self._compresses = compress
        self._reader = Reader(backend)
        self._form = Form(compress=compress)
        self._joiner = Joiner(backend, self._form, self._reader)
        self._joins = "pack" in backend.abilities
        # A server keeps replaced rows until a vacuum, so only `compact` joins there.
        joins_grown = joins_grown and self._joins and "reuse" in backend.abilities
        growth = TO_COMPRESS if compress else TO_DECRYPT if encrypted else None
        self._growth = growth if joins_grown else None

    def over(self, backend: Backend) -> Self:
        """The same form, without joining: the other backend may be in a transaction."""
        return type(self)(backend, compress=self._compresses, joins_grown=False)

    # --- writing ----------------------------------------------------------------------

    async def commit(self, writes: Sequence[Write]) -> list[Receipt]:
        if self._growth is None and not self._compresses:
            return await self.backend.commit(writes)
        packed = self._packed(writes)
        receipts = await self.backend.commit(packed)
        await self._join_grown(packed, receipts)
        return self._measured(packed, receipts)

    def commit_each(self, batches: Sequence[Sequence[Write]]) -> Sequence[Outcome]:
        packed = [self._packed(writes) for writes in batches]
        outcomes = super().commit_each(packed)
        for writes, outcome in zip(packed, outcomes, strict=True):
            if not isinstance(outcome, HoldfastError):
                run(self._join_grown(writes, outcome))
        return [
            outcome
            if isinstance(outcome, HoldfastError)
            else self._measured(writes, outcome)
            for writes, outcome in zip(packed, outcomes, strict=True)
        ]

    def _packed(self, writes: Sequence[Write]) -> Sequence[Write]:
        if not self._compresses:
            return writes
        pack = self._form.alone()
        return [
            replace(write, segments=tuple(map(pack, write.segments)))
            for write in writes
        ]

    def _measured(
        self, writes: Sequence[Write], receipts: list[Receipt]
    ) -> list[Receipt]:
        if not self._compresses:
            return receipts
        return [
            replace(
                receipt, packed=sum(len(segment.data) for segment in write.segments)
            )
            for write, receipt in zip(writes, receipts, strict=True)
        ]

    async def adopt(self, adoption: Adoption) -> None:
        segments = tuple(map(self._form.alone(), adoption.segments))
        await self.backend.adopt(replace(adoption, segments=segments))

    async def admit(self, admission: Admission) -> None:
        def families() -> Iterator[tuple[Adoption, Iterable[Segment]]]:
            pack = self._form.alone()
            for family, segments in admission.families():
                yield family, map(pack, segments)

        await self.backend.admit(replace(admission, families=families))

    async def prune(self, plan: Prune) -> Pruned:
        """A block of which only a part is freed is divided in the same transaction."""
        if self._joins and any(family.free for family in plan.families):
            plan = await self._joiner.divide(plan)
        return await self.backend.prune(plan)

    async def compact(self) -> None:
        """Join all neighbours, and then free unused space."""
        if self._joins:
            await self._joiner.join_all()
        await self.backend.compact()

    async def _join_grown(
        self, writes: Sequence[Write], receipts: Sequence[Receipt]
    ) -> None:
        """Join the end of a value if many segments were added to it since the last."""
        growth = self._growth
        if growth is None:
            return
        for write, receipt in zip(writes, receipts, strict=True):
            for segment in write.segments:
                if segment.number % growth.few == 0 and write.checkpoint is not None:
                    grown = _end(write.checkpoint.runs, segment.number, growth)
                    # The save is committed, and must not fail because joining does.
                    with suppress(HoldfastError):
                        await self._joiner.join(receipt.family, grown)

    # --- reading ----------------------------------------------------------------------

    async def read(self, keys: Sequence[Key[R]]) -> list[R | None]:
        found = await self.backend.read(keys)
        return [
            record if _is_plain(record) else await self._opened(key, record)
            for key, record in zip(keys, found, strict=True)
        ]

    async def _opened(self, key: object, record: Any) -> Any:
        if isinstance(record, Stored) and record.segments is not None:
            assert record.thread.head is not None
            runs = state_runs(record.thread.head.runs)
            most = record.thread.head.size
            singles = await self._reader.singles(record.segments, runs, most)
            return Stored(record.thread, singles)
        if isinstance(record, Pieces) and isinstance(key, SegmentsKey):
            singles = await self._reader.singles(record.segments, key.runs)
            return Pieces(tuple(singles))
        return record

    async def segments(self, family: int, runs: Sequence[Run]) -> list[Segment]:
        stored = await self.backend.segments(family, runs)
        return list(await self._reader.singles(stored, runs))

    async def inspect(self) -> Inspection:
        return OpenedInspection(await self.backend.inspect(), self._reader)


def _is_plain(record: object) -> bool:
    """True if there is nothing to open, as in most that the first search reads."""
    if isinstance(record, Stored | Pieces):
        for segment in record.segments or ():
            if segment.packing != PLAIN:
                return False
    return True


def _end(runs: Iterable[Run], number: int, growth: Growth) -> Run:
    """The end of a run up to a number, as much of it as is joined at that number."""
    count = growth.few if number % growth.many else growth.many
    [first] = [run.first for run in runs if run.first <= number <= run.last]
    return Run(max(first, number - count + 1), number)
