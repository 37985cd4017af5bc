"""Joining neighbouring segments into blocks, and dividing blocks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import suppress

from msgspec.structs import replace

from holdfast._engine.packing.forms import GROWING, Effort, Form, Opened, grouped
from holdfast._engine.packing.reading import Reader
from holdfast._port import (
    Backend,
    FamilyPlan,
    Prune,
    SegmentSize,
    SegmentSizes,
    SegmentsKey,
)
from holdfast._port.removal import subtract
from holdfast._values.records import Run, Segment
from holdfast.errors import Conflict

# What is joined in one transaction: so many segments and blocks, and so many bytes.
MOST, LARGEST = 1000, 4 << 20


class Joiner:
    """Puts what is stored into a form, in blocks wherever there are neighbours."""

    def __init__(self, backend: Backend, form: Form, reader: Reader) -> None:
        self._backend, self._form, self._reader = backend, form, reader

    async def join(self, family: int, wanted: Run) -> None:
        """Join the segments of a run."""
        stored = await self._backend.segments(family, [wanted])
        better = tuple(self._better(await self._reader.opened(stored), GROWING))
        await self._store([FamilyPlan(family, (), (), (), better)])

    async def join_all(self) -> None:
        """Join everything; what others change at the same moment stays as it is."""
        async for portion in self._portions():
            plans = await self._plans(portion)
            try:
                await self._store(plans)
            except Conflict:
                for plan in plans:
                    with suppress(Conflict):
                        await self._store([plan])

    async def divide(self, plan: Prune) -> Prune:
        """A plan that also divides the blocks of which only a part is freed."""
        keys = [
            SegmentsKey(family.family, (Run(number, number),))
            for family in plan.families
            for number in _ends(family.free)
        ]
        blocks: dict[int, dict[int, Segment]] = {}
        pieces = await self._backend.read(keys)
        for key, found in zip(keys, pieces, strict=True):
            for segment in found.segments if found else ():
                if segment.count > 1:
                    blocks.setdefault(key.family, {})[segment.number] = segment
        if not blocks:
            return plan
        families = [
            replace(family, packed=await self._left_over(family, blocks[family.family]))
            if family.family in blocks
            else family
            for family in plan.families
        ]
        return replace(plan, families=tuple(families))

    async def _left_over(
        self, plan: FamilyPlan, blocks: dict[int, Segment]
    ) -> tuple[Segment, ...]:
        """The segments that stay of blocks when the freed ones are taken out."""
        return tuple(
            self._form.together(run.first, one.of(run))
            for one in await self._reader.opened(list(blocks.values()))
            for run in subtract([one.run], plan.free)
        )

    def _better(self, opened: Iterable[Opened], effort: Effort) -> Iterator[Segment]:
        """Blocks and segments to be stored instead of others."""
        for group in grouped(opened, effort.size):
            first = group[0].stored
            if len(group) == 1 and self._form.is_of(first.packing):
                continue
            texts = [text for one in group for text in one.texts]
            new = self._form.together(first.number, texts, effort)
            if len(group) > 1 or new.packing != first.packing:
                yield new

    async def _portions(self) -> AsyncIterator[list[list[SegmentSize]]]:
        """Stretches of neighbours to be joined, as many as one plan should have."""
        after: int | None = 0
        while after is not None:
            page = await self._backend.scan(SegmentSizes(after=after, limit=MOST))
            after = page.cursor
            portion: list[list[SegmentSize]] = []
            for stretch in filter(self._is_improvable, _stretches(page)):
                portion.append(stretch)
                if sum(one.size for stretch in portion for one in stretch) > LARGEST:
                    yield portion
                    portion = []
            if portion:
                yield portion

    def _is_improvable(self, stretch: Sequence[SegmentSize]) -> bool:
        return len(stretch) > 1 or not self._form.is_of(stretch[0].packing)

    async def _plans(
        self, portion: Sequence[Sequence[SegmentSize]]
    ) -> list[FamilyPlan]:
        keys = [
            SegmentsKey(
                first.family, (Run(first.number, last.number + last.count - 1),)
            )
            for first, last in ((stretch[0], stretch[-1]) for stretch in portion)
        ]
        packed: dict[int, list[Segment]] = {}
        pieces = await self._backend.read(keys)
        for key, found in zip(keys, pieces, strict=True):
            opened = await self._reader.opened(found.segments if found else ())
            better = self._better(opened, self._form.cold)
            packed.setdefault(key.family, []).extend(better)
        return [
            FamilyPlan(family, (), (), (), tuple(better))
            for family, better in packed.items()
        ]

    async def _store(self, plans: Sequence[FamilyPlan]) -> None:
        plans = [plan for plan in plans if plan.packed]
        if plans:
            await self._backend.prune(Prune(at=0, families=tuple(plans)))


def _ends(runs: Iterable[Run]) -> Iterator[int]:
    for run in runs:
        yield run.first
        if run.last > run.first:
            yield run.last


def _stretches(sizes: Iterable[SegmentSize]) -> Iterator[list[SegmentSize]]:
    """Neighbours of one family, cut where they become too many bytes."""
    stretch: list[SegmentSize] = []
    last: SegmentSize | None = None
    size = 0
    for one in sizes:
        after = (last.family, last.number + last.count) if last else None
        if stretch and (size > LARGEST or after != (one.family, one.number)):
            yield stretch
            stretch, size = [], 0
        stretch.append(one)
        size += one.size
        last = one
    if stretch:
        yield stretch
