"""The counts and sizes of a scope."""

from __future__ import annotations

from holdfast._engine.scopes.families import ScopeFamilies
from holdfast._port import Backend, Facts, FamilySums, Sums

# So many families are in one query.
COUNTED = 10_000


async def summed(backend: Backend, families: ScopeFamilies) -> Sums:
    """What the families of a scope hold together."""
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
