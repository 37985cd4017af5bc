"""Copying a whole store to another of any kind: ids, order, digests, journal."""

from __future__ import annotations

from collections import defaultdict

import msgspec

from holdfast._engine.context import Context
from holdfast._engine.threads.removal import by_family
from holdfast._port import Adoption, Inspection, Rescued
from holdfast._port.plans import family_owner
from holdfast._port.removal import merged
from holdfast._values.records import (
    Checkpoint,
    Entry,
    Move,
    Progress,
    Run,
    Segment,
    ThreadRecord,
)
from holdfast._values.runs import divided
from holdfast.errors import Conflict, Corrupt

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
    """Copy everything into an empty store, or finish a copy that was interrupted."""
    inspection = await source.backend.inspect()
    try:
        rescued = await inspection.rescue()
        if rescued.damage:
            raise Corrupt("the store", f"{rescued.damage[0]}; salvage() it first")
        copier = _StoreCopy(source, target, inspection, rescued)
        return await copier.run(progress or (lambda _done, _all: None))
    finally:
        await inspection.close()


class _StoreCopy:
    """A copy in progress, from a view of the source."""

    def __init__(
        self,
        source: Context,
        target: Context,
        inspection: Inspection,
        rescued: Rescued,
    ) -> None:
        self.source, self.target = source, target
        self.inspection, self.rescued = inspection, rescued
        self.threads = by_family(rescued.threads)
        self.families = {
            thread.id: family
            for family, threads in self.threads.items()
            for thread in threads
            if thread.deleted_at is None
        }
        self.checkpoints: dict[int, list[Checkpoint]] = defaultdict(list)
        for checkpoint in rescued.checkpoints:
            self.checkpoints[checkpoint.family].append(checkpoint)
        self.segments = 0

    async def run(self, progress: Progress) -> Copied:
        there = await self._already_there()
        entries, moves = self._journals(), self._moves()
        skipped = 0
        for done, (family, threads) in enumerate(self.threads.items()):
            progress(done, len(self.threads))
            if any(thread.number in there for thread in threads):
                skipped += 1
                continue
            await self._copy_segments(family)
            adoption = Adoption(
                family=family,
                threads=tuple(threads),
                checkpoints=tuple(self.checkpoints[family]),
                entries=tuple(entries[family]),
                moves=tuple(moves[family]),
            )
            await self.target.backend.adopt(adoption)
        progress(len(self.threads), len(self.threads))
        return Copied(
            sum(t.deleted_at is None for t in self.rescued.threads),
            len(self.rescued.checkpoints),
            self.segments,
            len(self.rescued.entries),
            skipped,
        )

    async def _already_there(self) -> set[int]:
        """The numbers of threads that were copied before; refuses any others."""
        mine = {thread.number: thread for thread in self.rescued.threads}
        inspection = await self.target.backend.inspect()
        try:
            found = (await inspection.rescue()).threads
        finally:
            await inspection.close()
        for thread in found:
            same = mine.get(thread.number)
            if same is None or same.id != thread.id or _head(same) != _head(thread):
                raise Conflict(
                    f"the other store holds {thread.id!r}, which is not of this one;"
                    " copy into an empty store",
                    code="not_empty",
                    thread=thread.id,
                )
        return {thread.number for thread in found}

    def _journals(self) -> dict[int, list[Entry]]:
        found: dict[int, list[Entry]] = defaultdict(list)
        for entry in self.rescued.entries:
            found[self.families[entry.thread]].append(entry)
        return found

    def _moves(self) -> dict[int, list[Move]]:
        found: dict[int, list[Move]] = defaultdict(list)
        for move in self.rescued.moves:
            found[self.families[move.thread]].append(move)
        return found

    async def _copy_segments(self, family: int) -> None:
        runs = (run for c in self.checkpoints[family] for run in c.runs)
        for run in divided(merged(runs), CHUNK):
            await self._copy_run(family, run)

    async def _copy_run(self, family: int, run: Run) -> None:
        stored = tuple(await read_run(self.inspection, family, run))
        owner = family_owner(self.threads[family])
        adoption = Adoption(family=family, owner=owner, segments=stored)
        await self.target.backend.adopt(adoption)
        self.segments += len(stored)


async def read_run(inspection: Inspection, family: int, run: Run) -> list[Segment]:
    """The segments of a run; `Corrupt` if one of them is lost."""
    [found] = await inspection.segments([(family, run)])
    stored = [segment for segment in found if segment is not None]
    if len(stored) != len(found):
        raise Corrupt(f"family {family}", "a segment is lost; salvage() it first")
    return stored


def _head(thread: ThreadRecord) -> str | None:
    return thread.head.id if thread.head else None
