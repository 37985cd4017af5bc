"""Which threads an erasure removes, family by family."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence

import msgspec

from holdfast._engine.context import Context
from holdfast._engine.records import agent_checkpoints, agents
from holdfast._engine.threads.removal import checkpoints_of, roots_of, unneeded
from holdfast._engine.upkeep.erasure import ErasureRequest
from holdfast._port import FamilyPlan, FamilyThreads, Outlines, ThreadKey, Threads
from holdfast._port.removal import ancestry, plan_removal
from holdfast._values.graves import is_grave
from holdfast._values.records import PIN, Checkpoint, ThreadRecord
from holdfast.errors import Conflict

PAGE = 1000


class FamilyErasure(msgspec.Struct, frozen=True):
    """What goes of a family: threads, tombstones among them, and checkpoints.

    Without a ``plan`` no thread stays, and the backend drops the whole family.
    """

    threads: tuple[ThreadRecord, ...]
    plan: FamilyPlan | None

    @property
    def living(self) -> list[ThreadRecord]:
        """The threads that are not deleted yet."""
        return [thread for thread in self.threads if thread.deleted_at is None]


class ErasurePlans:
    """What an erasure removes, as it is asked for."""

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
        """What goes of a family; `Conflict` if a thread that stays needs it."""
        page = await self.context.backend.scan(FamilyThreads((number,)))
        family = _Family([thread for thread in page if not is_grave(thread)])
        family.add(thread for thread in family.threads if self._is_chosen(thread))
        if family.stays():
            family.checkpoints = await checkpoints_of(self.context, number)
            blocked = family.close(forks=self.request.forks)
            if blocked:
                raise _needed(blocked)
        return family.erasure(number)

    async def tombstones(self) -> AsyncIterator[ThreadRecord]:
        """All tombstones of the store whose checkpoints are gone.

        They have lost their owner and agent: whose they were is not known any more.
        """
        async for thread in pages(self.context, Threads(every=True)):
            if thread.deleted_at is None or is_grave(thread):
                continue
            own = Outlines(family=thread.family, thread=thread.number, limit=1)
            if not await self.context.backend.scan(own):
                yield thread


class _Family:
    """The threads of a family, and which of them go."""

    def __init__(self, threads: Sequence[ThreadRecord]) -> None:
        self.threads = threads
        self.checkpoints: Sequence[Checkpoint] = ()
        self._going: set[int] = set()

    def add(self, threads: Iterable[ThreadRecord]) -> None:
        """Let threads go."""
        self._going.update(thread.number for thread in threads)

    def stays(self) -> list[ThreadRecord]:
        """The living threads that do not go."""
        return [
            thread
            for thread in self.threads
            if thread.deleted_at is None and thread.number not in self._going
        ]

    def close(self, *, forks: bool) -> list[str]:
        """Add what depends on what goes; gives the names of the threads in the way.

        A pin belongs to what it holds, and a tombstone names what it was forked from.
        """
        blocked: set[str] = set()
        while True:
            names, doomed = self._names(), self._doomed()
            found = [t for t in self.threads if self._depends(t, names, doomed)]
            adds = [t for t in found if forks or t.kind == PIN or t.deleted_at]
            blocked |= {t.id for t in found} - {t.id for t in adds}
            if not adds:
                return sorted(blocked)
            self.add(adds)

    def _names(self) -> set[str]:
        return {thread.id for thread in self.threads if thread.number in self._going}

    def _doomed(self) -> set[str]:
        saved = self.checkpoints
        return {c.id for c in saved if c.thread_number in self._going}

    def _depends(self, thread: ThreadRecord, names: set[str], doomed: set[str]) -> bool:
        if thread.number in self._going:
            return False
        if thread.forked_from is not None and thread.forked_from.thread in names:
            return True
        own = [c.id for c in self.checkpoints if c.thread_number == thread.number]
        line = ancestry(self.checkpoints, [*own, *roots_of([thread])])
        return thread.deleted_at is None and not doomed.isdisjoint(line)

    def erasure(self, number: int) -> FamilyErasure:
        """What goes; of a family without a living thread all tombstones too."""
        staying = self.stays()
        if not staying:
            return FamilyErasure(tuple(self.threads), None)
        going = tuple(t for t in self.threads if t.number in self._going)
        gone = unneeded(staying, self.checkpoints)
        return FamilyErasure(going, plan_removal(number, self.checkpoints, gone))


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
