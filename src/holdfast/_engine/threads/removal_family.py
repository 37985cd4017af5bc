"""A family from which checkpoints are removed: read at once, or in pages."""

from __future__ import annotations

import sys
from array import array
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from itertools import chain
from typing import TypeAlias

from msgspec.structs import replace

from holdfast._engine.context import Context
from holdfast._port import (
    CheckpointKey,
    FamilyPlan,
    FamilySizes,
    FamilyThreads,
    Horizon,
    NumberedSaves,
    Outline,
    Outlines,
    Saves,
)
from holdfast._port.removal import FamilyTree, RemovalParts, outlined, overtaken
from holdfast._values.records import Checkpoint, ThreadRecord

# A family that has more checkpoints is read in pages, and one transaction removes no
# more of them than PART.
CHECKPOINTS, PART = 5_000, 10_000
# So many checkpoints, and so many keys, are read by one request. A checkpoint of a long
# thread may list hundreds of runs.
PAGE, KEYS = 1_000, 500


class SmallFamily:
    """A family whose checkpoints were read."""

    # It was read at one moment, so any other child came later. One transaction removes
    # all checkpoints that go.
    known, part = 0, sys.maxsize

    def __init__(self, checkpoints: Sequence[Checkpoint]) -> None:
        self._outlines = outlined(checkpoints)
        self._by_seq = {checkpoint.seq: checkpoint for checkpoint in checkpoints}
        self._seqs = {checkpoint.id: checkpoint.seq for checkpoint in checkpoints}

    async def outlines(self) -> AsyncIterator[Sequence[Outline]]:
        """All checkpoints, by sequence."""
        yield self._outlines

    async def records(self, seqs: Sequence[int]) -> list[Checkpoint]:
        """The checkpoints with the given numbers; all of them must exist."""
        return [self._by_seq[seq] for seq in seqs]

    going = records

    async def numbers(self, ids: Iterable[str]) -> dict[str, int]:
        """The sequence numbers of those with some ids."""
        return {id_: self._seqs[id_] for id_ in ids if id_ in self._seqs}

    async def has_lost(self, parts: RemovalParts, done: int) -> bool:
        """False: all parts are of one moment. The backend compares what goes."""
        del parts, done
        return False


class LargeFamily:
    """A family whose checkpoints are read in pages, and again when they are needed.

    ``known`` was the `Horizon` before ``threads`` were read: a child that is in none of
    the pages has a higher number.
    """

    def __init__(
        self,
        context: Context,
        family: int,
        threads: Sequence[ThreadRecord],
        known: int = sys.maxsize,
    ) -> None:
        self._backend, self._family = context.backend, family
        self.known, self.part = known, PART
        self._threads = [thread.number for thread in threads]

    async def outlines(self) -> AsyncIterator[Sequence[Outline]]:
        """All checkpoints, those of a thread after one another."""
        for thread in self._threads:
            after: int | None = 0
            while after is not None:
                query = Outlines(
                    family=self._family, thread=thread, after=after, limit=PAGE
                )
                page = await self._backend.scan(query)
                yield page.items
                after = page.cursor

    async def records(self, seqs: Sequence[int]) -> list[Checkpoint]:
        """The checkpoints with the given numbers that still exist."""
        query = NumberedSaves(family=self._family, numbers=tuple(seqs))
        return list(await self._backend.scan(query))

    async def going(self, seqs: Sequence[int]) -> list[Checkpoint]:
        """The checkpoints to remove, as `records` but in pages and without content."""
        found: list[Checkpoint] = []
        for first in range(0, len(seqs), PAGE):
            page = await self.records(seqs[first : first + PAGE])
            found += (replace(c, runs=(), manifest=b"") for c in page)
        return found

    async def numbers(self, ids: Iterable[str]) -> dict[str, int]:
        """The sequence numbers of those with some ids."""
        keys = [CheckpointKey(self._family, id_) for id_ in ids]
        found: dict[str, int] = {}
        for first in range(0, len(keys), KEYS):
            page = await self._backend.read(keys[first : first + KEYS])
            found |= {c.id: c.seq for c in page if c is not None}
        return found

    async def has_lost(self, parts: RemovalParts, done: int) -> bool:
        """True if another removal took checkpoints that count as users of segments."""
        query = FamilySizes(families=(self._family,), up_to=parts.last)
        found = sum(size.checkpoints for size in await self._backend.scan(query))
        return found < parts.left_after(done)


FamilySource: TypeAlias = SmallFamily | LargeFamily


class Family:
    """The checkpoints of a family as numbers, and the plans that remove some of them.

    Choices are flags, one for each place of the tree.
    """

    def __init__(self, number: int, source: FamilySource) -> None:
        self.number, self.source = number, source
        self.tree = FamilyTree()

    @classmethod
    async def read(cls, number: int, source: FamilySource) -> Family:
        """The family, with its tree."""
        family = cls(number, source)
        async for page in source.outlines():
            family.tree.add(page)
        family.tree.close()
        return family

    def heads(self, threads: Iterable[ThreadRecord]) -> Iterator[int]:
        """The places of the heads of threads."""
        return self.tree.places_of(t.head.seq for t in threads if t.head is not None)

    async def roots(self, threads: Sequence[ThreadRecord]) -> list[int]:
        """The places from which threads need their lines: heads and fork points."""
        return [*self.heads(threads), *await self.fork_points(threads)]

    async def fork_points(self, threads: Iterable[ThreadRecord]) -> list[int]:
        """The places where threads were forked."""
        origins = {t.forked_from.checkpoint for t in threads if t.forked_from}
        found = await self.source.numbers(origins)
        return list(self.tree.places_of(found.values()))

    async def line(self, threads: Sequence[ThreadRecord]) -> bytearray:
        """Flags the ancestors of threads, and the checkpoints saved in them."""
        own = self.tree.saved_in({thread.number for thread in threads})
        return self.tree.ancestry(chain(own, await self.roots(threads)))

    async def unneeded(self, staying: Sequence[ThreadRecord]) -> bytearray:
        """Flags what deleted threads left and no staying thread descends from."""
        if {thread.number for thread in staying}.issuperset(self.tree.threads):
            return bytearray(len(self.tree))
        return bytearray(not flag for flag in await self.line(staying))

    def divided(
        self,
        gone: Sequence[int],
        dropped: Iterable[ThreadRecord] = (),
        *,
        with_part: int = 0,
    ) -> list[array[int]]:
        """The places of what goes, the oldest first, in parts of a transaction each.

        The heads of threads that are dropped all go with one part, the first or (-1)
        the last: as long as a thread lives, its head cannot be removed.
        """
        heads = {place for place in self.heads(dropped) if gone[place]}
        chosen = (n for n, flag in enumerate(gone) if flag and n not in heads)
        places, size = array("q", chosen), self.source.part
        parts = [places[n : n + size] for n in range(0, len(places), size)]
        if heads:
            parts = parts or [array("q")]
            parts[with_part].extend(sorted(heads))
        return parts

    async def plans(self, parts: Sequence[Sequence[int]]) -> AsyncIterator[FamilyPlan]:
        """The plans that remove the parts, to be carried out one after the other.

        `Conflict` (code ``plan_stale``) if another writer has changed the family.
        """
        if not parts:
            return
        removal = RemovalParts(self.number, self.tree, parts, self.source.known)
        async for page in self.source.outlines():
            removal.use(page)
        removal.free()
        for number in range(len(removal)):
            if number and await self.source.has_lost(removal, number):
                raise overtaken()
            going = await self.source.going(removal.going(number))
            linked = await self.source.records(removal.linked(number))
            yield removal.plan(number, going, linked)


async def saves_of(context: Context, family: int) -> Sequence[Checkpoint] | None:
    """The checkpoints of a family, ``None`` if they are too many to be read at once."""
    query = Saves(family=family, oldest_first=True, limit=CHECKPOINTS)
    page = await context.backend.scan(query)
    return page.items if page.cursor is None else None


async def read_family(
    context: Context, number: int, threads: Sequence[ThreadRecord] = ()
) -> tuple[Family, Sequence[ThreadRecord]]:
    """A family as it is now, with all its threads, tombstones included.

    ``threads`` are its threads, if the caller has just read them.
    """
    threads = threads or await context.backend.scan(FamilyThreads((number,)))
    saves = await saves_of(context, number)
    if saves is not None:
        return await Family.read(number, SmallFamily(saves)), threads
    [known] = await context.backend.scan(Horizon())
    threads = await context.backend.scan(FamilyThreads((number,)))
    source = LargeFamily(context, number, threads, known)
    return await Family.read(number, source), threads


def living(threads: Iterable[ThreadRecord]) -> list[ThreadRecord]:
    """The threads that are not deleted."""
    return [thread for thread in threads if thread.deleted_at is None]
