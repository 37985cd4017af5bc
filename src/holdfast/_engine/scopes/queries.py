"""The queries of a scope: each is asked below it, and the answer of others left out.

The table at the end has every query of the port. One that is not in it cannot be asked
in a scope, so that a new query cannot show what belongs to others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from msgspec.structs import replace

from holdfast._engine.scopes.families import ScopeFamilies
from holdfast._engine.scopes.names import ScopeNames
from holdfast._port import (
    Ancestors,
    Backend,
    CheckpointEntries,
    Entries,
    FamilyEntries,
    FamilyMoves,
    FamilySaves,
    FamilySizes,
    FamilySums,
    FamilyThreads,
    Horizon,
    KindCount,
    Kinds,
    LineLength,
    Marked,
    Matches,
    Moves,
    NumberedSaves,
    Outlines,
    OwnEntries,
    Query,
    SavedIn,
    Saves,
    Surplus,
    ThreadMoves,
    Threads,
    Totals,
    Weights,
)
from holdfast._values.records import Checkpoint, Page

# So many families are in one query.
COUNTED = 10_000


class ScopedQueries:
    """Asks a backend for what a scope may see."""

    def __init__(
        self, backend: Backend, names: ScopeNames, families: ScopeFamilies
    ) -> None:
        self.backend, self.names, self.families = backend, names, families

    async def page(self, query: Query[Any]) -> Page[Any]:
        """A page of the scope's own records."""
        return await _ANSWERS[type(query)](self, query)

    async def _shown(self, query: Query[Any]) -> Page[Any]:
        page = await self.backend.scan(query)
        return Page(self.names.shown(page), page.cursor)

    async def _has(self, family: int) -> bool:
        return await self.families.has(self.backend, family)

    # --- by the name of a thread ------------------------------------------------------

    async def of_thread(self, query: Any) -> Page[Any]:
        return await self._shown(replace(query, thread=self.names.put(query.thread)))

    async def line_length(self, query: LineLength) -> Page[int]:
        return await self.backend.scan(LineLength(self.names.put(query.thread)))

    async def own_entries(self, query: OwnEntries) -> Page[Any]:
        threads = tuple(map(self.names.put, query.threads))
        return await self._shown(replace(query, threads=threads))

    async def ancestors(self, query: Ancestors) -> Page[Checkpoint]:
        start = query.start
        if isinstance(start, str):
            return await self._shown(replace(query, start=self.names.put(start)))
        return await self._shown(query) if await self._has(start.family) else Page(())

    async def checkpoint_entries(self, query: CheckpointEntries) -> Page[Any]:
        if not await self._has(query.thread.family):
            return Page(())
        thread = replace(query.thread, id=self.names.put(query.thread.id))
        return await self._shown(replace(query, thread=thread))

    async def threads(self, query: Threads) -> Page[Any]:
        if query.family is not None and not await self._has(query.family):
            return Page(())
        put = self.names.put
        return await self._shown(
            replace(
                query,
                prefix=put(query.prefix or ""),
                owner=None if query.owner is None else put(query.owner),
                agent=None if query.agent is None else put(query.agent),
            )
        )

    # --- by the number of a family ----------------------------------------------------

    async def of_family(self, query: Any) -> Page[Any]:
        return await self._shown(query) if await self._has(query.family) else Page(())

    async def saves(self, query: Saves) -> Page[Checkpoint]:
        thread = query.thread
        named = thread if thread is None else self.names.put(thread)
        return await self.of_family(replace(query, thread=named))

    async def outlines(self, query: Outlines) -> Page[Any]:
        if not await self._has(query.family):
            return Page(())
        return await self.backend.scan(query)

    async def of_families(self, query: Any) -> Page[Any]:
        return await self._shown(await self._ours(query))

    async def sizes(self, query: Any) -> Page[Any]:
        return await self.backend.scan(await self._ours(query))

    async def _ours(self, query: Any) -> Any:
        ours = await self.families.among(self.backend, query.families)
        found = tuple([family for family in query.families if family in ours])
        return replace(query, families=found)

    async def matches(self, query: Matches) -> Page[Checkpoint]:
        if query.family is not None and not await self._has(query.family):
            return Page(())
        return await self._shown(replace(query, within=self.names.put(query.within)))

    # --- about all families -----------------------------------------------------------

    async def weights(self, query: Weights) -> Page[Any]:
        page = await self.backend.scan(Weights())
        return Page((await self._of_ours(page))[: query.limit])

    async def surplus(self, query: Surplus) -> Page[Any]:
        page = await self.backend.scan(query)
        return Page(await self._of_ours(page), page.cursor)

    async def _of_ours(self, found: Sequence[Any]) -> tuple[Any, ...]:
        numbers = [record.family for record in found]
        ours = await self.families.among(self.backend, numbers)
        return tuple([record for record in found if record.family in ours])

    async def kinds(self, query: Kinds) -> Page[KindCount]:
        del query  # it has no conditions
        kinds = Counter(
            [
                thread.kind
                async for thread in self.families.threads(self.backend)
                if thread.head is not None
            ]
        )
        return Page(tuple([KindCount(kind, count) for kind, count in kinds.items()]))

    async def saved_in(self, query: SavedIn) -> Page[int]:
        ours = {
            thread.family
            async for thread in self.families.threads(self.backend)
            if thread.kind == query.kind and thread.head is not None
        }
        numbers, total = sorted(ours), 0
        for first in range(0, len(numbers), COUNTED):
            part = FamilySizes(families=tuple(numbers[first : first + COUNTED]))
            total += sum([size.checkpoints for size in await self.backend.scan(part)])
        return Page((total,))

    async def horizon(self, query: Horizon) -> Page[int]:
        return await self.backend.scan(query)

    async def totals(self, query: Totals) -> Page[Any]:
        del query
        return Page(())  # the caller then reads the heads


_Answer: TypeAlias = Callable[[ScopedQueries, Any], Awaitable[Page[Any]]]
_ANSWERS: dict[type[Query[Any]], _Answer] = {
    Ancestors: ScopedQueries.ancestors,
    CheckpointEntries: ScopedQueries.checkpoint_entries,
    Entries: ScopedQueries.of_thread,
    FamilyEntries: ScopedQueries.of_family,
    FamilyMoves: ScopedQueries.of_families,
    FamilySaves: ScopedQueries.of_families,
    FamilySizes: ScopedQueries.sizes,
    FamilySums: ScopedQueries.sizes,
    FamilyThreads: ScopedQueries.of_families,
    Horizon: ScopedQueries.horizon,
    Kinds: ScopedQueries.kinds,
    LineLength: ScopedQueries.line_length,
    Marked: ScopedQueries.of_family,
    Matches: ScopedQueries.matches,
    Moves: ScopedQueries.of_thread,
    NumberedSaves: ScopedQueries.of_family,
    Outlines: ScopedQueries.outlines,
    OwnEntries: ScopedQueries.own_entries,
    SavedIn: ScopedQueries.saved_in,
    Saves: ScopedQueries.saves,
    Surplus: ScopedQueries.surplus,
    ThreadMoves: ScopedQueries.of_family,
    Threads: ScopedQueries.threads,
    Totals: ScopedQueries.totals,
    Weights: ScopedQueries.weights,
}
