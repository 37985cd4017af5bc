"""What a prune removes: the families it is about, and plans for some at a time."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from datetime import timedelta

from msgspec.structs import replace

from holdfast._engine.context import Context
from holdfast._engine.effects.expiry import expired
from holdfast._engine.threads.removal import by_family
from holdfast._engine.upkeep.choice import FamilyChoice
from holdfast._engine.upkeep.family_source import (
    FamilySource,
    LargeFamily,
    SmallFamily,
)
from holdfast._engine.upkeep.family_tree import FamilyTree
from holdfast._engine.upkeep.removal_parts import RemovalParts, overtaken
from holdfast._engine.upkeep.scope import PruneScope
from holdfast._port import (
    FamilyPlan,
    FamilySaves,
    FamilySizes,
    FamilyThreads,
    Horizon,
    Prune,
    Surplus,
    Threads,
    Write,
)
from holdfast._values.records import Checkpoint, Page, ThreadRecord
from holdfast.retention import Retention, ThreadRules

# So many threads are looked at by one query for families, and so many read by one page.
LOOKED_AT, READ = 100_000, 10_000
# One transaction is about no more families, and they have no more checkpoints: others
# can write in between, and memory stays small. A family that has more is read in pages,
# and so many of its checkpoints are removed by one transaction.
FAMILIES, CHECKPOINTS, PART = 32, 5_000, 10_000


class PrunePlans:
    """The plans of one prune, made for a few families at a time."""

    def __init__(self, context: Context, policy: Retention, scope: PruneScope) -> None:
        self.context, self.policy, self.scope = context, policy, scope
        self.now = context.clock()
        # The families that may need something, and how many checkpoints they have.
        self.families: dict[int, int] = {}
        # The numbers of the threads to drop, with their `changed` as it was decided.
        self._dropped: dict[int, int] = {}

    # --- what it is about -------------------------------------------------------------

    async def find(self) -> None:
        """Decide which threads go, and find the families in which more may go."""
        policy, is_limited = self.policy, self.scope.is_limited
        if is_limited or policy.drops_threads or policy.effects is not None:
            await self._find_threads()
        if policy.thins_threads and not is_limited:
            await self._find_surplus()
        await self._find_sizes()

    async def _find_threads(self) -> None:
        rules = ThreadRules(self.policy, self.now)
        every = self.scope.is_limited or self.policy.effects is not None
        after: int | None = None
        while True:
            page = await self._read_threads(after)
            for thread in self._in_scope(page):
                is_dropped = rules.drops(thread)
                if is_dropped:
                    self._dropped[thread.number] = thread.changed
                if is_dropped or every:
                    self.families.setdefault(thread.family, 0)
            after = page.cursor
            if after is None:
                return

    async def _read_threads(self, after: int | None) -> Page[ThreadRecord]:
        scope, backend = self.scope, self.context.backend
        if scope.thread is not None:
            record = await self.context.find_thread(scope.thread)
            return Page(()) if record is None else Page((record,))
        query = Threads(
            agent=scope.agent,
            owner=scope.owner,
            prefix=scope.prefix,
            every=True,
            after=after,
            limit=READ,
        )
        return await backend.scan(query)

    def _in_scope(self, threads: Iterable[ThreadRecord]) -> Iterator[ThreadRecord]:
        return (t for t in threads if t.deleted_at is None and self.scope.has(t))

    async def _find_surplus(self) -> None:
        oldest = self.policy.oldest_kept(self.now)
        query = Surplus(
            limit=LOOKED_AT,
            more_than=self.policy.last or 0,
            saved_before=None if oldest is None else max(oldest, 0),
        )
        after: int | None = 0
        while after is not None:
            page = await self.context.backend.scan(replace(query, after=after))
            for found in page:
                self.families[found.family] = found.checkpoints
            after = page.cursor

    async def _find_sizes(self) -> None:
        unknown = [family for family, count in self.families.items() if not count]
        for first in range(0, len(unknown), READ):
            query = FamilySizes(families=tuple(unknown[first : first + READ]))
            for found in await self.context.backend.scan(query):
                self.families[found.family] = found.checkpoints

    def batches(self) -> Iterator[list[int]]:
        """The families of one transaction each."""
        batch: list[int] = []
        size = 0
        for family in sorted(self.families):
            count = self.families[family]
            if len(batch) == FAMILIES or (batch and size + count > CHECKPOINTS):
                yield batch
                batch, size = [], 0
            batch.append(family)
            size += count
        if batch:
            yield batch

    # --- what goes --------------------------------------------------------------------

    async def plans(
        self, families: Sequence[int], *, dry_run: bool
    ) -> AsyncIterator[Prune]:
        """What to remove from some families, as they are now; a transaction each.

        There is one, unless a family has many checkpoints to remove.
        """
        found = await self._threads(families)
        threads = [thread for thread in found if thread.deleted_at is None]
        # A thread that was used since is decided about by the next prune.
        dropped = [t for t in threads if self._dropped.get(t.number) == t.changed]
        gone = {thread.number for thread in dropped}
        staying = by_family(thread for thread in threads if thread.number not in gone)
        touched = {thread.family for thread in dropped}
        affected = [f for f in staying if f in touched or self._thinned(staying[f])]
        then = await self._expired(staying)
        first = Prune(at=self.now, threads=tuple(dropped), then=then, dry_run=dry_run)
        if len(affected) == 1 and self.families[affected[0]] > CHECKPOINTS:
            source = LargeFamily(self.context, affected[0], found)
            # Heads are counted only together with their threads, if nothing is done.
            size = sys.maxsize if dropped and dry_run else PART
            parts = await self._parts(
                source, staying[affected[0]], size, known=await self._horizon(dry_run)
            )
            async for plan in self._large_plans(first, parts, source):
                yield plan
        else:
            plans = await self._small_plans(affected, staying)
            yield replace(first, families=plans)

    async def _small_plans(
        self, families: Sequence[int], staying: dict[int, list[ThreadRecord]]
    ) -> tuple[FamilyPlan, ...]:
        found: list[FamilyPlan] = []
        for family, checkpoints in (await self._saved(families)).items():
            source = SmallFamily(checkpoints)
            parts = await self._parts(source, staying[family], len(checkpoints))
            found += [await parts.plan(number, source) for number in range(len(parts))]
        return tuple(found)

    async def _large_plans(
        self, first: Prune, parts: RemovalParts, source: FamilySource
    ) -> AsyncIterator[Prune]:
        plan = first
        for number in range(len(parts)):
            if number:
                plan = Prune(at=self.now, dry_run=first.dry_run)
                await self._refuse_others(parts, 0 if first.dry_run else number)
            yield replace(plan, families=(await parts.plan(number, source),))
        if not len(parts):
            yield first

    async def _refuse_others(self, parts: RemovalParts, done: int) -> None:
        """Plan again if another prune removed what counts as a user of segments."""
        query = FamilySizes(families=(parts.family,), up_to=parts.last)
        found = sum(size.checkpoints for size in await self.context.backend.scan(query))
        if found < parts.left_after(done):
            raise overtaken()

    async def _horizon(self, dry_run: bool) -> int:
        """Up to which number nothing can come that is not read from now on."""
        if dry_run:
            return sys.maxsize  # what comes meanwhile does not count
        [number] = await self.context.backend.scan(Horizon())
        return number

    async def _parts(
        self,
        source: FamilySource,
        staying: Sequence[ThreadRecord],
        size: int,
        known: int = 0,
    ) -> RemovalParts:
        tree = FamilyTree()
        async for page in source.outlines():
            tree.add(page)
        tree.close()
        choice = FamilyChoice(source, tree, staying, self._thinned(staying))
        gone = await choice.gone(self.policy, self.now)
        parts = RemovalParts(staying[0].family, tree, gone, size, known)
        if len(parts):
            async for page in source.outlines():
                parts.use(page)
            parts.free()
        return parts

    async def count(self, families: Sequence[int]) -> int:
        """How many checkpoints of families were saved in threads of the scope.

        With those of deleted threads.
        """
        living = (t for t in await self._threads(families) if t.deleted_at is None)
        outside = by_family(thread for thread in living if not self.scope.has(thread))
        total = sum(self.families[family] for family in families)
        for family, threads in outside.items():
            async for page in LargeFamily(self.context, family, threads).outlines():
                total -= len(page)
        return total

    async def _threads(self, families: Sequence[int]) -> Page[ThreadRecord]:
        return await self.context.backend.scan(FamilyThreads(tuple(families)))

    async def _saved(self, families: Sequence[int]) -> dict[int, list[Checkpoint]]:
        """The checkpoints of some families, oldest first."""
        found: dict[int, list[Checkpoint]] = defaultdict(list)
        if families:
            page = await self.context.backend.scan(FamilySaves(tuple(families)))
            for checkpoint in page:
                found[checkpoint.family].append(checkpoint)
        return found

    def _thinned(self, staying: Iterable[ThreadRecord]) -> list[ThreadRecord]:
        return [t for t in self._in_scope(staying) if self.policy.may_thin(t.kind)]

    async def _expired(
        self, staying: dict[int, list[ThreadRecord]]
    ) -> tuple[Write, ...]:
        """What forgets old effects of the threads that stay."""
        age = self.policy.effects
        if age is None:
            return ()
        before = self.now - age // timedelta(microseconds=1)
        found: list[Write] = []
        for family, threads in staying.items():
            meant = [t for t in self._in_scope(threads) if self.policy.is_for(t.kind)]
            names = {thread.id for thread in meant}
            if names:
                writes = await expired(self.context, family, before)
                found += (write for write in writes if write.thread in names)
        return tuple(found)
