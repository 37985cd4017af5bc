"""Plans of a prune: the families to visit, and the removals from some at a time."""

from __future__ import annotations

import sys
from array import array
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import chain

import msgspec
from msgspec.structs import replace

from holdfast._engine.context import Context
from holdfast._engine.effects.expiry import expired
from holdfast._engine.threads.removal import by_family
from holdfast._engine.threads.removal_family import (
    CHECKPOINTS,
    Family,
    FamilySource,
    LargeFamily,
    SmallFamily,
)
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
from holdfast._port.removal import LABELLED, TAGGED
from holdfast._values.records import PIN, Checkpoint, Page, ThreadRecord, check_filter
from holdfast.retention import Retention, ThreadRules, places_kept

# So many threads are looked at by one query for families, and so many read by one page.
LOOKED_AT, READ = 100_000, 10_000
# One transaction is about no more families, and they have no more checkpoints than
# CHECKPOINTS: others can write in between, and memory stays small.
FAMILIES = 32
# Finds the families with checkpoints of deleted threads.
LEFT = Surplus(limit=LOOKED_AT, more_than=sys.maxsize)


class PruneRange(msgspec.Struct, frozen=True, kw_only=True):
    """The threads that a prune is limited to: those that match all that is given."""

    thread: str | None = None
    agent: str | None = None
    owner: str | None = None
    prefix: str | None = None

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            check_filter(getattr(self, name), name)

    @property
    def is_limited(self) -> bool:
        """True if there can be threads outside of it."""
        return any(getattr(self, name) is not None for name in self.__struct_fields__)

    def has(self, thread: ThreadRecord) -> bool:
        """True if a thread is in it."""
        return (
            self.thread in (None, thread.id)
            and self.agent in (None, thread.agent)
            and self.owner in (None, thread.owner)
            and (self.prefix is None or thread.id.startswith(self.prefix))
        )


EVERYTHING = PruneRange()


class PrunePlans:
    """The plans of one prune, made for a few families at a time."""

    def __init__(self, context: Context, policy: Retention, only: PruneRange) -> None:
        self.context, self.policy, self.only = context, policy, only
        self.now = context.clock()
        # The families in which checkpoints may go, and the numbers of all they have.
        self.families: dict[int, int] = {}
        # The numbers of the threads to drop, with their `changed` as it was decided.
        self._dropped: dict[int, int] = {}
        # The families with checkpoints of deleted threads, if no thread is thinned: an
        # interrupted prune may have left them.
        self._left: dict[int, int] = {}
        self._has_tombstones = False

    # --- the families to visit --------------------------------------------------------

    async def find(self) -> None:
        """Decide which threads go, and find the families in which more may go."""
        policy, is_limited = self.policy, self.only.is_limited
        if is_limited or policy.drops_threads or policy.effects is not None:
            await self._find_threads()
        if policy.thins_threads and not is_limited:
            oldest = policy.oldest_kept(self.now)
            before = None if oldest is None else max(oldest, 0)
            last = policy.last or 0
            more = Surplus(limit=LOOKED_AT, more_than=last, saved_before=before)
            self.families |= await surplus(self.context, more)
        elif self._has_tombstones and not is_limited:
            self._left = await surplus(self.context, LEFT)
            self.families |= self._left
        unknown = [family for family, count in self.families.items() if not count]
        for first in range(0, len(unknown), READ):
            query = FamilySizes(families=tuple(unknown[first : first + READ]))
            for found in await self.context.backend.scan(query):
                self.families[found.family] = found.checkpoints

    async def _find_threads(self) -> None:
        rules = ThreadRules(self.policy, self.now)
        every = self.only.is_limited or self.policy.effects is not None
        after: int | None = None
        while True:
            page = await self._read_threads(after)
            self._has_tombstones |= any(t.deleted_at is not None for t in page)
            for thread in self._chosen_of(page):
                is_dropped = rules.drops(thread)
                if is_dropped:
                    self._dropped[thread.number] = thread.changed
                if is_dropped or every:
                    self.families.setdefault(thread.family, 0)
            after = page.cursor
            if after is None:
                return

    async def _read_threads(self, after: int | None) -> Page[ThreadRecord]:
        only, backend = self.only, self.context.backend
        if only.thread is not None:
            record = await self.context.find_thread(only.thread)
            return Page(()) if record is None else Page((record,))
        query = Threads(
            agent=only.agent,
            owner=only.owner,
            prefix=only.prefix,
            every=True,
            after=after,
            limit=READ,
        )
        return await backend.scan(query)

    def _chosen_of(self, threads: Iterable[ThreadRecord]) -> Iterator[ThreadRecord]:
        return (t for t in threads if t.deleted_at is None and self.only.has(t))

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

    # --- the removals -----------------------------------------------------------------

    async def plans(
        self, families: Sequence[int], *, dry_run: bool
    ) -> AsyncIterator[Prune]:
        """The removals from some families, as they are now; a transaction each.

        There is one, unless a family has many checkpoints to remove.
        """
        is_large = len(families) == 1 and self.families[families[0]] > CHECKPOINTS
        # Read the horizon before the threads. A fork that is made later saves with a
        # higher number, and the backend refuses a plan that lacks such a child. A dry
        # run ignores it.
        known = sys.maxsize
        if is_large and not dry_run:
            [known] = await self.context.backend.scan(Horizon())
        found = await self._threads(families)
        threads = [thread for thread in found if thread.deleted_at is None]
        # A thread that was used meanwhile is left to the next prune.
        dropped = [t for t in threads if self._dropped.get(t.number) == t.changed]
        out = {thread.number for thread in dropped}
        staying = by_family(thread for thread in threads if thread.number not in out)
        touched = {thread.family for thread in dropped} | self._left.keys()
        affected = [f for f in staying if f in touched or self._thinned(staying[f])]
        then = await self._expired(staying)
        first = Prune(at=self.now, threads=tuple(dropped), then=then, dry_run=dry_run)
        if not is_large or not affected:
            yield replace(first, families=await self._small_plans(affected, staying))
            return
        source = LargeFamily(self.context, affected[0], found, known)
        family, gone = await self._chosen(affected[0], source, staying)
        # A dry run drops no thread for the next part, which then must have no heads.
        parts = family.divided(gone, dropped if dry_run else ())
        async for plan in family.plans(parts):
            yield replace(first, families=(plan,))
            first = Prune(at=self.now, dry_run=dry_run)
        if not parts:
            yield first

    async def _small_plans(
        self, families: Sequence[int], staying: dict[int, list[ThreadRecord]]
    ) -> tuple[FamilyPlan, ...]:
        found: list[FamilyPlan] = []
        saved: dict[int, list[Checkpoint]] = defaultdict(list)
        if families:
            query = FamilySaves(tuple(families))
            for checkpoint in await self.context.backend.scan(query):
                saved[checkpoint.family].append(checkpoint)
        for number, saves in saved.items():
            family, gone = await self._chosen(number, SmallFamily(saves), staying)
            found += [plan async for plan in family.plans(family.divided(gone))]
        return tuple(found)

    async def _chosen(
        self,
        number: int,
        source: FamilySource,
        staying: dict[int, list[ThreadRecord]],
    ) -> tuple[Family, bytearray]:
        """A family, and a flag for each checkpoint that goes."""
        threads = staying[number]
        family = await Family.read(number, source)
        choice = FamilyChoice(family, threads, self._thinned(threads))
        return family, await choice.gone(self.policy, self.now)

    async def count(self, families: Sequence[int]) -> int:
        """The number of checkpoints of families that were saved in the chosen threads.

        Checkpoints of deleted threads count too.
        """
        living = (t for t in await self._threads(families) if t.deleted_at is None)
        outside = by_family(thread for thread in living if not self.only.has(thread))
        total = sum(self.families[family] for family in families)
        for family, threads in outside.items():
            async for page in LargeFamily(self.context, family, threads).outlines():
                total -= len(page)
        return total

    async def _threads(self, families: Sequence[int]) -> Page[ThreadRecord]:
        return await self.context.backend.scan(FamilyThreads(tuple(families)))

    def _thinned(self, staying: Iterable[ThreadRecord]) -> list[ThreadRecord]:
        return [t for t in self._chosen_of(staying) if self.policy.may_thin(t.kind)]

    async def _expired(
        self, staying: dict[int, list[ThreadRecord]]
    ) -> tuple[Write, ...]:
        """Writes that forget old effects of the threads that stay."""
        age = self.policy.effects
        if age is None:
            return ()
        before = self.now - age // timedelta(microseconds=1)
        found: list[Write] = []
        for family, threads in staying.items():
            meant = [t for t in self._chosen_of(threads) if self.policy.is_for(t.kind)]
            names = {thread.id for thread in meant}
            if names:
                writes = await expired(self.context, family, before)
                found += (write for write in writes if write.thread in names)
        return tuple(found)


async def surplus(context: Context, query: Surplus) -> dict[int, int]:
    """The families that a query finds, and the numbers of their checkpoints."""
    families: dict[int, int] = {}
    after: int | None = 0
    while after is not None:
        page = await context.backend.scan(replace(query, after=after))
        families |= {found.family: found.checkpoints for found in page}
        after = page.cursor
    return families


class FamilyChoice:
    """The checkpoints that go from a family of which some threads are thinned.

    All answers are flags, one for each place of the tree.
    """

    def __init__(
        self,
        family: Family,
        staying: Sequence[ThreadRecord],
        thinned: Sequence[ThreadRecord],
    ) -> None:
        self._family, self._tree = family, family.tree
        self._staying, self._thinned = staying, thinned
        self._living = {thread.number for thread in staying}

    async def gone(self, policy: Retention, now: int) -> bytearray:
        """Flags what no staying thread needs, or what the policy does not keep."""
        gone = await self._family.unneeded(self._staying)
        if self._thinned:
            kept = await self._kept(policy, gone, now)
            may_go = await self._may_go()
            for place in range(len(gone)):
                if may_go[place] and not kept[place]:
                    gone[place] = 1
        return gone

    async def _kept(
        self, policy: Retention, gone: Sequence[int], now: int
    ) -> bytearray:
        tree, family = self._tree, self._family
        marks = LABELLED * policy.labelled | TAGGED * policy.tagged
        kept = bytearray(bool(mark & marks) for mark in tree.marks)
        forks = await family.fork_points(self._staying) if policy.forks else ()
        for place in chain(family.heads(self._staying), forks):
            kept[place] = 1
        for places in tree.by_thread(without=gone):
            saved_at = array("q", (tree.saved_at[place] for place in places))
            for nth in places_kept(policy, saved_at, now):
                kept[places[nth]] = 1
        return kept

    async def _may_go(self) -> bytearray:
        """Flags the checkpoints that were saved in threads that are thinned.

        Checkpoints of deleted threads are flagged too if no other thread needs them.
        The points at which other threads were forked are kept.
        """
        tree, others = self._tree, self._others()
        found = bytearray(len(tree))
        for place in tree.saved_in({thread.number for thread in self._thinned}):
            found[place] = 1
        left = set(tree.threads) - self._living
        if left:
            needed = await self._family.line(others)
            for place in tree.saved_in(left):
                found[place] = not needed[place]
        for place in await self._family.fork_points(others):
            found[place] = 0
        return found

    def _others(self) -> list[ThreadRecord]:
        """The threads that are not thinned, without the pins of those that are."""
        names = {thread.id for thread in self._thinned}
        return [
            thread
            for thread in self._staying
            if thread.id not in names and _source(thread) not in names
        ]


def _source(thread: ThreadRecord) -> str | None:
    """The thread that a pin holds."""
    origin = thread.forked_from if thread.kind == PIN else None
    return None if origin is None else origin.thread
