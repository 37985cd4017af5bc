"""The families that belong to a scope, and the sums of their sizes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection

from holdfast._engine.scopes.names import ScopeNames
from holdfast._port import Backend, Facts, FamilySums, FamilyThreads, Sums, Threads
from holdfast._values.records import ThreadRecord

# So many families are remembered, and so many threads are read by one page.
MOST, READ = 65_536, 5_000
# So many families are in one query.
COUNTED = 10_000


class ScopeFamilies:
    """Tells a scope's families from others, and remembers them.

    All threads of a family are of one scope, because a fork is made through the scope
    of its origin, and the number of a family is not used again.
    """

    def __init__(self, names: ScopeNames) -> None:
        self._names = names
        self._known: set[int] = set()

    def meet(self, family: int) -> None:
        """Remember a family that belongs to the scope."""
        if len(self._known) >= MOST:
            self._known.clear()
        self._known.add(family)

    def known(self, families: Collection[int]) -> set[int]:
        """The given families that are remembered as the scope's."""
        return self._known.intersection(families)

    async def has(self, backend: Backend, family: int) -> bool:
        """True if a family belongs to the scope."""
        return family in self._known or family in await self.among(backend, [family])

    async def among(self, backend: Backend, families: Collection[int]) -> set[int]:
        """The given families that belong to the scope."""
        ours = self.known(families)
        unknown = tuple([family for family in families if family not in ours])
        if unknown:
            for thread in await backend.scan(FamilyThreads(unknown)):
                if self._names.has(thread) and thread.family not in ours:
                    self.meet(thread.family)
                    ours.add(thread.family)
        return ours

    async def threads(self, backend: Backend) -> AsyncIterator[ThreadRecord]:
        """All threads of the scope as they are stored, tombstones too."""
        after: int | None = None
        while True:
            query = Threads(
                prefix=self._names.prefix, every=True, after=after, limit=READ
            )
            page = await backend.scan(query)
            for thread in page:
                yield thread
            after = page.cursor
            if after is None:
                return

    async def all(self, backend: Backend) -> tuple[int, ...]:
        """The numbers of all families of the scope."""
        found = {thread.family async for thread in self.threads(backend)}
        return tuple(sorted(found))


async def summed(backend: Backend, families: ScopeFamilies) -> Sums:
    """The counts and sizes of all families of a scope together."""
    numbers = await families.all(backend)
    total = Sums()
    for first in range(0, len(numbers), COUNTED):
        query = FamilySums(families=numbers[first : first + COUNTED])
        for found in await backend.scan(query):
            total += found
    return total


async def facts_of(
    backend: Backend, families: ScopeFamilies, abilities: frozenset[str]
) -> Facts:
    """The facts of a scope; its files are as large as what it stores in them."""
    sums = await summed(backend, families)
    return Facts(
        threads=sums.threads,
        checkpoints=sums.checkpoints,
        segments=sums.segments,
        journal_entries=sums.journal_entries,
        logical_bytes=sums.logical_bytes,
        stored_bytes=sums.stored_bytes,
        file_bytes=sums.stored_bytes,
        format=(await backend.facts()).format,
        abilities=abilities,
    )
