"""Copying a whole store to another of any kind: ids, order, digests, journal."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from holdfast._engine.context import Context
from holdfast._engine.upkeep.copy_family import CHUNK, FamilyCopy, Taken, taken_of
from holdfast._engine.upkeep.copy_target import CopyTarget
from holdfast._engine.upkeep.family_records import (
    CHECKPOINTS,
    FamilyReader,
)
from holdfast._port import Adoption, Inspection
from holdfast._port.plans import family_owner
from holdfast._port.removal import merged
from holdfast._values.arguments import check_progress, checked_flag
from holdfast._values.records import Progress
from holdfast._values.runs import divided

# Above every sequence number.
LATEST = 1 << 62


class Copied(msgspec.Struct, frozen=True):
    """What a copy holds; ``skipped`` families had been copied before."""

    threads: int
    checkpoints: int
    segments: int
    journal_entries: int
    skipped: int


async def copy(
    source: Context,
    target: Context,
    progress: Progress | None = None,
    *,
    update: bool = False,
) -> Copied:
    """Copy everything into an empty store, or finish a copy that was interrupted.

    Each family is copied as it is at one moment; others may write meanwhile. With
    ``update`` the families are copied again that have changed since an earlier copy,
    and those that are gone are removed.
    """
    check_progress(progress)
    checked_flag(update, "update")
    inspection = await source.backend.inspect()
    try:
        reader = FamilyReader(source, inspection)
        await reader.find()
        place = CopyTarget(target, update=update)
        copier = _StoreCopy(source, place, inspection, reader)
        return await copier.run(progress or (lambda _done, _all: None))
    finally:
        await inspection.close()


class _StoreCopy:
    """A copy in progress, some families at a time."""

    def __init__(
        self,
        source: Context,
        target: CopyTarget,
        inspection: Inspection,
        reader: FamilyReader,
    ) -> None:
        self.source, self.target = source, target
        self.inspection, self.reader = inspection, reader
        self.taken = Taken()
        self.skipped = 0

    async def run(self, progress: Progress) -> Copied:
        await self.target.begin(self.reader.sizes)
        done, total = 0, len(self.reader.sizes)
        for batch in self.reader.batches():
            is_large = self.reader.sizes[batch[0]] > CHECKPOINTS
            families = await self.reader.read(batch, heads_only=is_large)
            await self.target.compare(families)
            for family in families:
                progress(done, total)
                if family.family in self.target.families:
                    self.taken += await self._skip(family)
                else:
                    self.taken += await self._copy(family, in_parts=is_large)
                done += 1
        await self.target.finish()
        progress(total, total)
        taken = self.taken
        return Copied(
            taken.threads,
            taken.checkpoints,
            taken.segments,
            taken.entries,
            self.skipped,
        )

    async def _skip(self, family: Adoption) -> Taken:
        self.skipped += 1
        count = await self.inspection.count_saved(family.family, LATEST)
        return taken_of(family, checkpoints=count)

    async def _copy_in_parts(self, family: Adoption) -> Taken:
        parts = FamilyCopy(
            self.source, self.target.context, self.inspection, family.family
        )
        return await parts.run()

    async def _copy(self, family: Adoption, *, in_parts: bool) -> Taken:
        await self.target.touch()
        segments = None if in_parts else await self._copy_segments(family)
        if segments is None:  # it is large, or others have removed some meanwhile
            return await self._copy_in_parts(family)
        # Without segments, this is the first part of the family.
        await self.target.context.backend.adopt(replace(family, anew=not segments))
        return taken_of(family, len(family.checkpoints), segments)

    async def _copy_segments(self, family: Adoption) -> int | None:
        """How many were copied; ``None`` if one is missing."""
        copied = 0
        runs = (run for checkpoint in family.checkpoints for run in checkpoint.runs)
        for run in divided(merged(runs), CHUNK):
            stored = await self.reader.segments(family.family, run)
            if stored is None:
                return None
            # What an interrupted copy left may belong to checkpoints that are gone.
            anew = not copied
            part = Adoption(
                family=family.family,
                owner=family_owner(family.threads),
                anew=anew,
                segments=tuple(stored),
            )
            await self.target.context.backend.adopt(part)
            copied += len(stored)
        return copied
