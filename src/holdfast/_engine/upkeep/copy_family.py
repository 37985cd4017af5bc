"""Copying one family with many checkpoints in parts, while others use it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence

import msgspec
from msgspec.structs import replace

from holdfast._engine.context import Context
from holdfast._engine.upkeep.family_records import families_of, refuse_damaged
from holdfast._port import Adoption, Inspection, Place
from holdfast._port.plans import family_owner
from holdfast._port.removal import merged, subtract
from holdfast._values.records import Checkpoint, Run
from holdfast._values.runs import divided
from holdfast.errors import Corrupt

# The number of segments copied at a time.
CHUNK = 500
# How often a family is copied again whose checkpoints others remove meanwhile, before
# the log has to keep what they change.
ATTEMPTS = 3


class Taken(msgspec.Struct, frozen=True):
    """What was copied of a family."""

    threads: int = 0
    checkpoints: int = 0
    segments: int = 0
    entries: int = 0

    def __add__(self, other: Taken) -> Taken:
        return Taken(
            self.threads + other.threads,
            self.checkpoints + other.checkpoints,
            self.segments + other.segments,
            self.entries + other.entries,
        )


def taken_of(family: Adoption, checkpoints: int, segments: int = 0) -> Taken:
    """What there is of a family."""
    living = sum(thread.deleted_at is None for thread in family.threads)
    return Taken(living, checkpoints, segments, len(family.entries))


class FamilyCopy:
    """Copies a family as it was when its threads were read.

    What is saved later has larger numbers and is left out. If something was removed
    meanwhile, the copy begins anew.
    """

    def __init__(
        self, source: Context, target: Context, inspection: Inspection, family: int
    ) -> None:
        self._source, self._target = source, target
        self._inspection, self._family = inspection, family
        self._owner: str | None = None
        self._copied: list[Run] = []
        self._segments = self._checkpoints = 0

    async def run(self) -> Taken:
        for _ in range(ATTEMPTS):
            taken = await self._attempt()
            if taken is not None:
                return taken
        async with self._inspection.moment():
            taken = await self._attempt()
        assert taken is not None, "nothing changes within a moment"
        return taken

    async def _attempt(self) -> Taken | None:
        self._copied, self._segments, self._checkpoints = [], 0, 0
        await self._adopt(Adoption(family=self._family, anew=True))
        rescued = await self._inspection.families([self._family], heads_only=True)
        refuse_damaged(rescued.damage)
        if not rescued.threads:
            return Taken()
        [found] = families_of(rescued)
        self._owner = family_owner(found.threads)
        last = max(thread.changed for thread in found.threads)
        total = await self._inspection.count_saved(self._family, last)
        is_whole = await self._copy_all(last)
        if await self._inspection.count_saved(self._family, last) != total:
            return None
        if not is_whole:
            what = f"family {self._family}"
            raise Corrupt(what, "a segment is lost; salvage() it first")
        named = {id_ for move in found.moves for id_ in (move.source, move.target)}
        known = await self._numbers(named, found.checkpoints)
        await self._adopt(replace(found, checkpoints=(), known=known))
        return taken_of(found, self._checkpoints, self._segments)

    async def _copy_all(self, last: int) -> bool:
        """Copy all checkpoints up to a number; false if a segment is missing."""
        async for checkpoints in self._portions(last):
            if not await self._copy(checkpoints):
                return False
        return True

    async def _adopt(self, part: Adoption) -> None:
        await self._target.backend.adopt(replace(part, owner=self._owner))

    async def _portions(self, last: int) -> AsyncIterator[list[Checkpoint]]:
        after: Place | None = Place(self._family)
        while after is not None and after.family == self._family:
            portion = await self._inspection.checkpoints(after)
            refuse_damaged(portion.damage)
            yield [
                checkpoint
                for checkpoint in portion.records
                if checkpoint.family == self._family and checkpoint.seq <= last
            ]
            after = portion.end

    async def _copy(self, checkpoints: Sequence[Checkpoint]) -> bool:
        """Copy checkpoints after the segments they use."""
        runs = merged({run for c in checkpoints for run in c.runs})
        for run in divided(subtract(runs, self._copied), CHUNK):
            if not await self._copy_run(run):
                return False
        self._copied = merged([*self._copied, *runs])
        known = await self._numbers((c.parent for c in checkpoints), checkpoints)
        saved = tuple(checkpoints)
        await self._adopt(Adoption(family=self._family, checkpoints=saved, known=known))
        self._checkpoints += len(checkpoints)
        return True

    async def _copy_run(self, run: Run) -> bool:
        [found] = await self._inspection.segments([(self._family, run)])
        stored = [segment for segment in found if segment is not None]
        if len(stored) < len(found):
            return False
        await self._adopt(Adoption(family=self._family, segments=tuple(stored)))
        self._segments += len(stored)
        return True

    async def _numbers(
        self, ids: Iterable[str | None], here: Iterable[Checkpoint]
    ) -> dict[str, int]:
        """The sequence numbers of checkpoints that are not among those at hand."""
        known = {checkpoint.id: checkpoint.seq for checkpoint in here}
        for id_ in ids:
            if id_ is not None and id_ not in known:
                found = await self._inspection.checkpoint(self._family, id_)
                if found is not None:
                    known[id_] = found.seq
        return known
