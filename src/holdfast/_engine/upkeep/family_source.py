"""Reading a family that is to be pruned: all of it at once, or in pages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Protocol

from msgspec.structs import replace

from holdfast._engine.context import Context
from holdfast._port import CheckpointKey, NumberedSaves, Outline, Outlines
from holdfast._values.records import Checkpoint, ThreadRecord

# So many checkpoints, and so many keys, are read by one request. A checkpoint of a long
# thread may list hundreds of runs.
PAGE, KEYS = 1_000, 500


class FamilySource(Protocol):
    """The checkpoints of one family."""

    def outlines(self) -> AsyncIterator[Sequence[Outline]]:
        """All of them, those of a thread after one another, or all by sequence."""
        ...

    async def records(self, seqs: Sequence[int]) -> list[Checkpoint]:
        """Those with some numbers that are still there."""
        ...

    async def doomed(self, seqs: Sequence[int]) -> list[Checkpoint]:
        """As `records`, of many that are only removed: content may be missing."""
        ...

    async def numbers(self, ids: Iterable[str]) -> list[int]:
        """The sequence numbers of those with some ids."""
        ...


class SmallFamily:
    """A family whose checkpoints were read."""

    def __init__(self, checkpoints: Sequence[Checkpoint]) -> None:
        self._by_seq = {checkpoint.seq: checkpoint for checkpoint in checkpoints}
        self._seqs = {checkpoint.id: checkpoint.seq for checkpoint in checkpoints}

    async def outlines(self) -> AsyncIterator[Sequence[Outline]]:
        yield [self._outline(checkpoint) for checkpoint in self._by_seq.values()]

    def _outline(self, c: Checkpoint) -> Outline:
        parent = self._seqs.get(c.parent or "")
        marks = c.label is not None, bool(c.tags)
        return Outline(c.seq, parent, c.thread_number, c.saved_at, *marks, c.runs)

    async def records(self, seqs: Sequence[int]) -> list[Checkpoint]:
        return [self._by_seq[seq] for seq in seqs]

    doomed = records

    async def numbers(self, ids: Iterable[str]) -> list[int]:
        return [self._seqs[id_] for id_ in ids if id_ in self._seqs]


class LargeFamily:
    """A family whose checkpoints are read in pages, and again when they are needed."""

    def __init__(
        self, context: Context, family: int, threads: Sequence[ThreadRecord]
    ) -> None:
        self._backend, self._family = context.backend, family
        self._threads = [thread.number for thread in threads]

    async def outlines(self) -> AsyncIterator[Sequence[Outline]]:
        for thread in self._threads:
            after: int | None = 0
            while after is not None:
                page = await self._backend.scan(
                    Outlines(
                        family=self._family, thread=thread, after=after, limit=PAGE
                    )
                )
                yield page.items
                after = page.cursor

    async def records(self, seqs: Sequence[int]) -> list[Checkpoint]:
        query = NumberedSaves(family=self._family, numbers=tuple(seqs))
        return list(await self._backend.scan(query))

    async def doomed(self, seqs: Sequence[int]) -> list[Checkpoint]:
        found: list[Checkpoint] = []
        for first in range(0, len(seqs), PAGE):
            page = await self.records(seqs[first : first + PAGE])
            found += (replace(c, runs=(), manifest=b"") for c in page)
        return found

    async def numbers(self, ids: Iterable[str]) -> list[int]:
        wanted = list(ids)
        found: list[int] = []
        for first in range(0, len(wanted), KEYS):
            keys = [CheckpointKey(self._family, id_) for id_ in wanted[first:][:KEYS]]
            found += (c.seq for c in await self._backend.read(keys) if c is not None)
        return found
