"""The view of a scope that may be damaged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from holdfast._engine.scopes.families import ScopeFamilies, summed
from holdfast._engine.scopes.names import ScopeNames
from holdfast._port import Backend, HeadId, Inspection, Place, Portion, Rescued
from holdfast._port.layer import InspectionLayer
from holdfast._values.records import Checkpoint, Entry, Run, Segment, ThreadRecord
from holdfast.errors import Corrupt

R = TypeVar("R")

# For damage that names nothing of the scope. It may be the scope's own: a record that
# cannot be read does not say whose it is.
ELSEWHERE = "a part of the store is damaged; verify the store without a scope"


def own_damage(damage: Iterable[str], names: ScopeNames) -> tuple[str, ...]:
    """The messages about damage, without the names of other scopes."""
    told = [names.text(d) if names.is_about_us(d) else ELSEWHERE for d in damage]
    return tuple(dict.fromkeys(told))


class ScopedInspection(InspectionLayer):
    """The view of `Backend.inspect` without what belongs to others."""

    def __init__(
        self,
        inspection: Inspection,
        backend: Backend,
        names: ScopeNames,
        families: ScopeFamilies,
    ) -> None:
        super().__init__(inspection)
        self._backend, self._names, self._families = backend, names, families

    async def _ours(self, numbers: Iterable[int]) -> set[int]:
        wanted = [*numbers]
        try:
            return await self._families.among(self._backend, wanted)
        except Corrupt:
            # The threads of a damaged store are read first.
            return self._families.known(wanted)

    async def families(
        self, numbers: Sequence[int], *, heads_only: bool = False
    ) -> Rescued:
        ours = await self._ours(numbers)
        wanted = [number for number in numbers if number in ours]
        found = await super().families(wanted, heads_only=heads_only)
        shown = self._names.shown
        return Rescued(
            shown(found.threads),
            shown(found.checkpoints),
            shown(found.entries),
            shown(found.moves),
            own_damage(found.damage, self._names),
        )

    async def threads(self, after: Place) -> Portion[ThreadRecord]:
        portion = self._portion(await super().threads(after))
        for thread in portion.records:
            self._families.meet(thread.family)
        return portion

    async def checkpoints(self, after: Place) -> Portion[Checkpoint]:
        return self._portion(await super().checkpoints(after))

    async def saves(self, after: Place) -> Portion[Checkpoint]:
        return self._portion(await super().saves(after))

    async def heads(self, after: Place) -> Portion[HeadId]:
        return self._portion(await super().heads(after))

    async def entries(self, after: Place) -> Portion[Entry]:
        return self._portion(await super().entries(after))

    def _portion(self, portion: Portion[R]) -> Portion[R]:
        return Portion(
            self._names.shown(portion.records),
            own_damage(portion.damage, self._names),
            portion.lost,
            portion.end,
        )

    async def headed_by(self, lost: Sequence[int]) -> list[str]:
        names = self._names
        found = await super().headed_by(lost)
        return [names.strip(name) for name in found if name.startswith(names.prefix)]

    async def checkpoint(self, family: int, id_: str) -> Checkpoint | None:
        if not await self._ours([family]):
            return None
        found = await super().checkpoint(family, id_)
        return next(iter(self._names.shown([found] if found else [])), None)

    async def segments(
        self, wanted: Sequence[tuple[int, Run]]
    ) -> list[list[Segment | None]]:
        ours = await self._ours({family for family, _ in wanted})
        own = [(family, run) for family, run in wanted if family in ours]
        found = iter(await super().segments(own))
        return [
            next(found) if family in ours else [None] * (run.last - run.first + 1)
            for family, run in wanted
        ]

    async def count_checkpoints(self) -> int:
        try:
            return (await summed(self._backend, self._families)).checkpoints
        except Corrupt:
            return 0  # the number is only for the progress

    async def count_saved(self, family: int, up_to: int) -> int:
        if not await self._ours([family]):
            return 0
        return await super().count_saved(family, up_to)

    async def count_segments(self, families: Sequence[int]) -> list[int]:
        ours = await self._ours(families)
        own = [family for family in families if family in ours]
        found = iter(await super().count_segments(own))
        return [next(found) if family in ours else 0 for family in families]

    async def count_strays(self) -> int:
        return 0  # it is not known whose they are; the whole store's verify counts them
