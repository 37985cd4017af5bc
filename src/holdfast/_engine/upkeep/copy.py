"""Copying a whole store to another of any kind: ids, order, digests, journal."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec
from msgspec.structs import replace

from holdfast._engine.context import Context
from holdfast._engine.upkeep.family_records import FamilyReader, thread_portions
from holdfast._port import Adoption, FamilyThreads
from holdfast._port.removal import merged
from holdfast._values.records import Progress, Segment, ThreadRecord
from holdfast._values.runs import divided
from holdfast.errors import Conflict

# The number of segments copied at a time.
CHUNK = 500


class Copied(msgspec.Struct, frozen=True):
    """What a copy holds; ``skipped`` families had been copied before."""

    threads: int
    checkpoints: int
    segments: int
    journal_entries: int
    skipped: int


async def copy(
    source: Context, target: Context, progress: Progress | None = None
) -> Copied:
    """Copy everything into an empty store, or finish a copy that was interrupted.

    Each family is copied as it is at one moment; others may write meanwhile.
    """
    inspection = await source.backend.inspect()
    try:
        reader = FamilyReader(source, inspection)
        await reader.find()
        copier = _StoreCopy(source, target, reader)
        return await copier.run(progress or (lambda _done, _all: None))
    finally:
        await inspection.close()


class _StoreCopy:
    """A copy in progress, some families at a time."""

    def __init__(self, source: Context, target: Context, reader: FamilyReader) -> None:
        self.source, self.target, self.reader = source, target, reader
        self.threads = self.checkpoints = self.segments = self.entries = 0
        self.skipped = 0

    async def run(self, progress: Progress) -> Copied:
        there = await self._already_there()
        done, total = 0, len(self.reader.sizes)
        for batch in self.reader.batches():
            families = await self.reader.read(batch)
            await self._refuse_others(families, there.intersection(batch))
            for family in families:
                progress(done, total)
                await self._take(family, is_there=family.family in there)
                done += 1
        progress(total, total)
        return Copied(
            self.threads, self.checkpoints, self.segments, self.entries, self.skipped
        )

    async def _already_there(self) -> set[int]:
        """The families that were copied before; refuses any that are not ours."""
        found: set[int] = set()
        inspection = await self.target.backend.inspect()
        try:
            async for threads in thread_portions(inspection):
                for thread in threads:
                    if thread.family not in self.reader.sizes:
                        raise _not_empty(thread)
                    found.add(thread.family)
        finally:
            await inspection.close()
        return found

    async def _refuse_others(
        self, families: Iterable[Adoption], there: Collection[int]
    ) -> None:
        """Refuse families of the target that differ from ours."""
        if not there:
            return
        mine = {t.number: t for family in families for t in family.threads}
        for thread in await self.target.backend.scan(FamilyThreads(tuple(there))):
            same = mine.get(thread.number)
            if same is None or same.id != thread.id or _head(same) != _head(thread):
                raise _not_empty(thread)

    async def _take(self, family: Adoption, *, is_there: bool) -> None:
        taken: Adoption | None = family
        if is_there:
            self.skipped += 1
        else:
            taken = await self._copy(family)
        if taken is not None:
            self.threads += sum(t.deleted_at is None for t in taken.threads)
            self.checkpoints += len(taken.checkpoints)
            self.entries += len(taken.entries)

    async def _copy(self, family: Adoption) -> Adoption | None:
        """Copy a family as it is now; ``None`` if it was removed meanwhile."""
        found: Adoption | None = family
        while found is not None and not await self._copy_segments(found):
            found = await self.reader.read_again(found)
        nothing = Adoption(family=family.family, anew=True)
        if found is None or not any(c.runs for c in found.checkpoints):
            await self.target.backend.adopt(replace(found or nothing, anew=True))
        else:
            await self.target.backend.adopt(found)
        return found

    async def _copy_segments(self, family: Adoption) -> bool:
        """False if one is missing: then the family was changed meanwhile."""
        copied = 0
        runs = (run for checkpoint in family.checkpoints for run in checkpoint.runs)
        for run in divided(merged(runs), CHUNK):
            stored = await self.reader.segments(family.family, run)
            if stored is None:
                return False
            parts = await self.source.packer.unpack(stored)
            plain = [Segment(s.number, d) for s, d in zip(stored, parts, strict=True)]
            packed = await self.target.packer.pack(plain)
            # What an interrupted copy left may belong to checkpoints that are gone.
            anew = not copied
            part = Adoption(family=family.family, anew=anew, segments=packed)
            await self.target.backend.adopt(part)
            copied += len(packed)
        self.segments += copied
        return True


def _not_empty(thread: ThreadRecord) -> Conflict:
    return Conflict(
        f"the other store holds {thread.id!r}, which is not of this one;"
        " copy into an empty store",
        code="not_empty",
        thread=thread.id,
    )


def _head(thread: ThreadRecord) -> str | None:
    return thread.head.id if thread.head else None
