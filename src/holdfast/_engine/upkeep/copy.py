"""Copying a whole store to another of any kind: ids, order, digests, journal."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec
from msgspec.structs import replace

from holdfast._engine.context import Context
from holdfast._engine.upkeep.copy_family import CHUNK, FamilyCopy, Taken, taken_of
from holdfast._engine.upkeep.family_records import (
    CHECKPOINTS,
    FamilyReader,
    thread_portions,
)
from holdfast._port import Adoption, FamilyThreads, Inspection
from holdfast._port.plans import family_owner
from holdfast._port.removal import merged
from holdfast._values.records import Progress, ThreadRecord
from holdfast._values.runs import divided
from holdfast.errors import Conflict

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
    inspection = await source.backend.inspect()
    try:
        reader = FamilyReader(source, inspection)
        await reader.find()
        copier = _StoreCopy(source, target, inspection, reader, update=update)
        return await copier.run(progress or (lambda _done, _all: None))
    finally:
        await inspection.close()


class _StoreCopy:
    """A copy in progress, some families at a time."""

    def __init__(
        self,
        source: Context,
        target: Context,
        inspection: Inspection,
        reader: FamilyReader,
        *,
        update: bool,
    ) -> None:
        self.source, self.target = source, target
        self.inspection, self.reader = inspection, reader
        self.update = update
        self.taken = Taken()
        self.skipped = 0

    async def run(self, progress: Progress) -> Copied:
        there = await self._already_there()
        done, total = 0, len(self.reader.sizes)
        for batch in self.reader.batches():
            is_large = self.reader.sizes[batch[0]] > CHECKPOINTS
            families = await self.reader.read(batch, heads_only=is_large)
            there -= await self._outdated(families, there.intersection(batch))
            for family in families:
                progress(done, total)
                if family.family in there:
                    self.taken += await self._skip(family)
                elif is_large:
                    self.taken += await self._copy_in_parts(family)
                else:
                    self.taken += await self._copy(family)
                done += 1
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

    async def _already_there(self) -> set[int]:
        """The families that were copied before; refuses or drops what is not ours."""
        found: set[int] = set()
        gone: set[int] = set()
        inspection = await self.target.backend.inspect()
        try:
            async for threads in thread_portions(inspection):
                for thread in threads:
                    if thread.family in self.reader.sizes:
                        found.add(thread.family)
                    elif not self.update:
                        raise _not_empty(thread)
                    else:
                        gone.add(thread.family)
        finally:
            await inspection.close()
        for family in gone:
            await self.target.backend.adopt(Adoption(family=family, anew=True))
        return found

    async def _outdated(
        self, families: Iterable[Adoption], there: Collection[int]
    ) -> set[int]:
        """The families of the target that differ from ours; refuses to replace them
        without ``update``.
        """
        if not there:
            return set()
        mine = {_moment(t): t for family in families for t in family.threads}
        theirs = await self.target.backend.scan(FamilyThreads(tuple(there)))
        known = {_moment(thread): thread for thread in theirs}
        differing = [
            thread
            for moment, thread in (mine | known).items()
            if thread.family in there and (moment not in mine or moment not in known)
        ]
        if differing and not self.update:
            raise _not_empty(differing[0])
        return {thread.family for thread in differing}

    async def _copy_in_parts(self, family: Adoption) -> Taken:
        parts = FamilyCopy(self.source, self.target, self.inspection, family.family)
        return await parts.run()

    async def _copy(self, family: Adoption) -> Taken:
        segments = await self._copy_segments(family)
        if segments is None:  # others have removed some meanwhile
            return await self._copy_in_parts(family)
        # Without segments, this is the first part of the family.
        await self.target.backend.adopt(replace(family, anew=not segments))
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
            await self.target.backend.adopt(part)
            copied += len(stored)
        return copied


def _not_empty(thread: ThreadRecord) -> Conflict:
    return Conflict(
        f"the other store holds {thread.id!r}, which is not of this one, or has changed"
        " since it was copied; copy into an empty store, or bring an earlier copy up to"
        " date with update=True",
        code="not_empty",
        thread=thread.id,
    )


def _moment(thread: ThreadRecord) -> tuple[int, str, int, str | None]:
    """What differs whenever a thread has changed."""
    head = thread.head.id if thread.head else None
    return thread.number, thread.id, thread.changed, head
