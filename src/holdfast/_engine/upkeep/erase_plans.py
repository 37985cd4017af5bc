"""Plans of an erasure: which threads go, family by family."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence

import msgspec

from holdfast._engine.context import Context
from holdfast._engine.records import agent_checkpoints, agents
from holdfast._engine.threads.removal_family import Family, living, read_family
from holdfast._engine.upkeep.erasure import ErasureRequest
from holdfast._port import (
    FamilyPlan,
    FamilyThreads,
    Outlines,
    Prune,
    ThreadKey,
    Threads,
)
from holdfast._port.removal import FamilyTree
from holdfast._values.graves import is_grave
from holdfast._values.records import PIN, ThreadRecord
from holdfast.errors import Conflict

PAGE = 1000


class FamilyErasure(msgspec.Struct, frozen=True):
    """The threads that go of a family, tombstones among them, and its checkpoints.

    ``gone`` flags the checkpoints that go. Without a ``family`` no thread stays, and
    the backend drops all of it.
    """

    threads: tuple[ThreadRecord, ...]
    family: Family | None = None
    gone: bytearray = bytearray()

    @property
    def living(self) -> list[ThreadRecord]:
        """The threads that are not deleted yet."""
        return living(self.threads)

    async def prunes(self, at: int, *, dry_run: bool) -> AsyncIterator[Prune]:
        """The transactions that remove everything.

        The last one drops the threads: as long as something of them is left, an erasure
        that goes on after an interruption finds them by their owner and agent.
        """
        plans: list[FamilyPlan] = []
        if self.family is not None:
            parts = self.family.divided(self.gone, self.living, with_part=-1)
            async for plan in self.family.plans(parts):
                if plans:
                    yield Prune(at=at, families=tuple(plans), dry_run=dry_run)
                plans = [plan]
        yield Prune(
            at=at,
            threads=tuple(self.living if dry_run else self.threads),
            families=tuple(plans),
            erase=True,
            dry_run=dry_run,
        )


class ErasurePlans:
    """The families and threads that a request for an erasure removes."""

    def __init__(self, context: Context, request: ErasureRequest) -> None:
        self.context, self.request = context, request

    async def families(self) -> list[int]:
        """The families that have something to erase, by number."""
        found: set[int] = set()
        async for thread in self._chosen():
            found.add(thread.family)
        return sorted(found)

    async def _chosen(self) -> AsyncIterator[ThreadRecord]:
        """The threads that were asked for; of those by name also the tombstones."""
        for name in self._names():
            [found] = await self.context.backend.read([ThreadKey(name)])
            if found is not None and not is_grave(found):
                yield found
        if self.request.thread is None:
            query = Threads(
                owner=self.request.owner, agent=self.request.agent, every=True
            )
            async for thread in pages(self.context, query):
                yield thread

    def _names(self) -> tuple[str, ...]:
        if self.request.thread is not None:
            return (self.request.thread,)
        agent = self.request.agent
        if agent is None:
            return ()
        return agents.thread_of(agent), agent_checkpoints.thread_of(agent)

    def _is_chosen(self, thread: ThreadRecord) -> bool:
        request = self.request
        if thread.id in self._names():
            return True
        if request.owner is not None:
            return thread.owner == request.owner
        return request.agent is not None and thread.agent == request.agent

    async def family(self, number: int) -> FamilyErasure:
        """The part of a family that goes; `Conflict` if a staying thread needs it."""
        page = await self.context.backend.scan(FamilyThreads((number,)))
        choice = self._choice(page)
        if choice.staying:
            family, threads = await read_family(self.context, number, page)
            choice = self._choice(threads)
            blocked = await choice.close(family, forks=self.request.forks)
            if blocked:
                raise _needed(blocked)
            if choice.staying:
                gone = await family.unneeded(choice.staying)
                return FamilyErasure(tuple(choice.going), family, gone)
        return FamilyErasure(tuple(choice.threads))

    def _choice(self, threads: Iterable[ThreadRecord]) -> _Choice:
        named = [thread for thread in threads if not is_grave(thread)]
        return _Choice(named, filter(self._is_chosen, named))

    async def tombstones(self) -> AsyncIterator[ThreadRecord]:
        """All tombstones of the store whose checkpoints are gone.

        They have lost their owner and agent, so their subject is not known any more.
        """
        async for thread in pages(self.context, Threads(every=True)):
            if thread.deleted_at is None or is_grave(thread):
                continue
            own = Outlines(family=thread.family, thread=thread.number, limit=1)
            if not await self.context.backend.scan(own):
                yield thread


class _Choice:
    """The threads of a family, and which of them go."""

    def __init__(
        self, threads: Sequence[ThreadRecord], going: Iterable[ThreadRecord]
    ) -> None:
        self.threads = threads
        self._numbers = {thread.number for thread in going}

    @property
    def going(self) -> list[ThreadRecord]:
        return [t for t in self.threads if t.number in self._numbers]

    @property
    def staying(self) -> list[ThreadRecord]:
        """The living threads that do not go."""
        return [t for t in living(self.threads) if t.number not in self._numbers]

    async def close(self, family: Family, *, forks: bool) -> list[str]:
        """Add the threads that depend on going ones; returns the names of the others.

        Pins and tombstones are always added: a pin only holds a checkpoint of a going
        thread, and a tombstone names the thread it was forked from. Other forks are
        added with ``forks``; without it they block the erasure, and are returned.
        """
        origins = {t.forked_from.checkpoint for t in self.threads if t.forked_from}
        points = await family.source.numbers(origins)
        blocked: set[str] = set()
        while True:
            found = list(self._dependent(family.tree, points))
            adds = [t for t in found if forks or t.kind == PIN or t.deleted_at]
            blocked |= {t.id for t in found} - {t.id for t in adds}
            if not adds:
                return sorted(blocked)
            self._numbers.update(thread.number for thread in adds)

    def _dependent(
        self, tree: FamilyTree, points: dict[str, int]
    ) -> Iterator[ThreadRecord]:
        """The threads that do not go, but are forks of one that does or build on it."""
        names = {thread.id for thread in self.going}
        doomed = tree.descent(tree.saved_in(self._numbers))
        saved = {tree.threads[place] for place, flag in enumerate(doomed) if flag}
        for thread in self.threads:
            if thread.number in self._numbers:
                continue
            head, origin = thread.head, thread.forked_from
            roots = [head.seq if head else 0]
            roots.append(points.get(origin.checkpoint, 0) if origin else 0)
            is_on = thread.number in saved or any(
                doomed[place] for place in tree.places_of(roots)
            )
            is_fork = origin is not None and origin.thread in names
            if is_fork or (thread.deleted_at is None and is_on):
                yield thread


async def pages(context: Context, query: Threads) -> AsyncIterator[ThreadRecord]:
    """The threads of a listing, read page by page."""
    after: int | None = None
    while True:
        page = await context.backend.scan(
            msgspec.structs.replace(query, after=after, limit=PAGE)
        )
        for thread in page:
            yield thread
        after = page.cursor
        if after is None:
            return


def _needed(names: Sequence[str]) -> Conflict:
    shown = ", ".join(map(repr, names[:5])) + (" and others" if names[5:] else "")
    return Conflict(
        f"history that is to be erased is shared by {shown}; erase these too with"
        " forks=True, or delete them first",
        code="in_use",
        thread=names[0],
    )
