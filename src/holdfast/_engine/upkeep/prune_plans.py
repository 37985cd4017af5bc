"""What a prune removes: the families it is about, and plans for some at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta

from msgspec.structs import replace

from holdfast._engine.context import Context
from holdfast._engine.effects.expiry import expired
from holdfast._engine.threads.removal import by_family, unneeded
from holdfast._engine.upkeep.scope import PruneScope, removable
from holdfast._port import (
    FamilyPlan,
    FamilySaves,
    FamilyThreads,
    Prune,
    Surplus,
    Threads,
    Write,
)
from holdfast._port.removal import plan_removal
from holdfast._values.records import Checkpoint, Page, ThreadRecord
from holdfast.retention import Retention, ThreadRules, checkpoints_to_remove

# So many threads are looked at by one query for families, and so many read by one page.
LOOKED_AT, READ = 100_000, 10_000
# One transaction is about no more families, and reads no more checkpoints unless one
# family has more: others can write in between, and memory stays small.
FAMILIES, CHECKPOINTS = 32, 5_000


class PrunePlans:
    """The plans of one prune, made for a few families at a time."""

    def __init__(self, context: Context, policy: Retention, scope: PruneScope) -> None:
        self.context, self.policy, self.scope = context, policy, scope
        self.now = context.clock()
        # The families that may need something, and how many checkpoints they have, 0 if
        # that is not known.
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

    async def plan(self, families: Sequence[int]) -> Prune:
        """What to remove from some families, as they are now."""
        threads = await self.living(families)
        # A thread that was used since is decided about by the next prune.
        dropped = [t for t in threads if self._dropped.get(t.number) == t.changed]
        gone = {thread.number for thread in dropped}
        staying = by_family(thread for thread in threads if thread.number not in gone)
        touched = {thread.family for thread in dropped}
        thinned = {f: self._thinned(theirs) for f, theirs in staying.items()}
        saved = await self.saved([f for f in staying if thinned[f] or f in touched])
        plans = [
            plan
            for family, checkpoints in saved.items()
            if (plan := self._without(staying[family], thinned[family], checkpoints))
        ]
        return Prune(
            at=self.now,
            threads=tuple(dropped),
            families=tuple(plans),
            then=await self._expired(staying),
        )

    async def living(self, families: Sequence[int]) -> list[ThreadRecord]:
        """The threads of some families."""
        page = await self.context.backend.scan(FamilyThreads(tuple(families)))
        return [thread for thread in page if thread.deleted_at is None]

    async def saved(self, families: Sequence[int]) -> dict[int, list[Checkpoint]]:
        """The checkpoints of some families, oldest first."""
        found: dict[int, list[Checkpoint]] = defaultdict(list)
        if families:
            page = await self.context.backend.scan(FamilySaves(tuple(families)))
            for checkpoint in page:
                found[checkpoint.family].append(checkpoint)
        return found

    def _thinned(self, staying: Iterable[ThreadRecord]) -> list[ThreadRecord]:
        return [t for t in self._in_scope(staying) if self.policy.may_thin(t.kind)]

    def _without(
        self,
        staying: Sequence[ThreadRecord],
        thinned: Sequence[ThreadRecord],
        checkpoints: Sequence[Checkpoint],
    ) -> FamilyPlan | None:
        doomed = unneeded(staying, checkpoints)
        if thinned:
            gone = {checkpoint.id for checkpoint in doomed}
            left = [c for c in checkpoints if c.id not in gone]
            surplus = checkpoints_to_remove(self.policy, staying, left, self.now)
            may_go = removable(staying, thinned, checkpoints)
            gone |= {checkpoint.id for checkpoint in surplus} & may_go
            doomed = [c for c in checkpoints if c.id in gone]
        if not doomed:
            return None
        return plan_removal(doomed[0].family, checkpoints, doomed)

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
