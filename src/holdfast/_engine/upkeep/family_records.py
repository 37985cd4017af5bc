"""Reading the records of whole families out of a store, some families at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from holdfast._engine.context import Context
from holdfast._port import Adoption, FamilySizes, Inspection, Place, Rescued
from holdfast._values.graves import is_grave
from holdfast._values.records import Run, Segment, ThreadRecord
from holdfast.errors import Corrupt
from holdfast.retention import AGENT_CHECKPOINTS

T = TypeVar("T")

# One moment is about no more families, and they have no more checkpoints unless one
# family has more: the log of a busy file stays small, and so does the memory.
FAMILIES, CHECKPOINTS = 32, 5_000
COUNTED = 10_000


class FamilyReader:
    """Reads families, each as it is at one moment; others may write in between."""

    def __init__(self, context: Context, inspection: Inspection) -> None:
        self._context, self._inspection = context, inspection
        # The number of checkpoints of each family.
        self.sizes: dict[int, int] = {}

    async def find(self) -> None:
        """Find all families.

        Families with checkpoints of agents come first: the pinned states are in other
        families, and must be read later than the checkpoint that pins them.
        """
        first: set[int] = set()
        families: set[int] = set()
        async for threads in thread_portions(self._inspection):
            # The digests of erased names mean nothing in another store.
            families.update(t.family for t in threads if not is_grave(t))
            first.update(t.family for t in threads if t.kind == AGENT_CHECKPOINTS)
        await self.choose([*sorted(first), *sorted(families - first)])

    async def choose(self, families: Iterable[int]) -> None:
        """Limit the reader to these families."""
        self.sizes = dict.fromkeys(families, 0)
        numbers = list(self.sizes)
        for first in range(0, len(numbers), COUNTED):
            query = FamilySizes(families=tuple(numbers[first : first + COUNTED]))
            for found in await self._context.backend.scan(query):
                self.sizes[found.family] = found.checkpoints

    def batches(self) -> Iterator[list[int]]:
        """The families that are read together."""
        batch: list[int] = []
        size = 0
        for family, count in self.sizes.items():
            if len(batch) == FAMILIES or (batch and size + count > CHECKPOINTS):
                yield batch
                batch, size = [], 0
            batch.append(family)
            size += count
        if batch:
            yield batch

    async def read(
        self, families: Sequence[int], *, heads_only: bool = False
    ) -> list[Adoption]:
        """The records of families without segments; `Corrupt` if one cannot be read.

        With ``heads_only``, of the checkpoints only the heads of threads.
        """
        rescued = await self._inspection.families(families, heads_only=heads_only)
        refuse_damaged(rescued.damage)
        return families_of(rescued)

    async def read_again(self, family: Adoption) -> Adoption | None:
        """A family of which a segment was missing, as it is now.

        ``None`` if it was removed; `Corrupt` if it was not changed meanwhile.
        """
        found = await self.read([family.family])
        if found == [family]:
            what = f"family {family.family}"
            raise Corrupt(what, "a segment is lost; salvage() it first")
        return found[0] if found else None

    async def segments(self, family: int, run: Run) -> list[Segment] | None:
        """The segments of a run, ``None`` if one of them is not there."""
        [found] = await self._inspection.segments([(family, run)])
        stored = [segment for segment in found if segment is not None]
        return stored if len(stored) == len(found) else None


async def thread_portions(
    inspection: Inspection,
) -> AsyncIterator[tuple[ThreadRecord, ...]]:
    """All threads, without their heads; `Corrupt` if one cannot be read."""
    after: Place | None = Place()
    while after is not None:
        portion = await inspection.threads(after)
        refuse_damaged(portion.damage)
        yield portion.records
        after = portion.end


def refuse_damaged(damage: Sequence[str]) -> None:
    """Raise `Corrupt` if something could not be read."""
    if damage:
        raise Corrupt("the store", f"{damage[0]}; salvage() it first")


def families_of(rescued: Rescued) -> list[Adoption]:
    """Records by family, in the order of the threads."""
    homes = {t.id: t.family for t in rescued.threads if t.deleted_at is None}
    kept = (t for t in rescued.threads if not is_grave(t))
    threads = _grouped(kept, lambda t: t.family, lambda t: t.number)
    checkpoints = _grouped(rescued.checkpoints, lambda c: c.family, lambda c: c.seq)
    entries = _grouped(rescued.entries, lambda e: homes[e.thread], lambda e: e.seq)
    moves = _grouped(rescued.moves, lambda m: homes[m.thread], lambda m: m.seq)
    return [
        Adoption(
            family=number,
            threads=tuple(threads[number]),
            checkpoints=tuple(checkpoints[number]),
            entries=tuple(entries[number]),
            moves=tuple(moves[number]),
        )
        for number in threads
    ]


def _grouped(
    records: Iterable[T], family: Callable[[T], int], order: Callable[[T], int]
) -> dict[int, list[T]]:
    found: dict[int, list[T]] = defaultdict(list)
    for record in sorted(records, key=order):
        found[family(record)].append(record)
    return found
