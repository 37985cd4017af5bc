"""Checking that everything stored is as it was written."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from itertools import groupby
from typing import TypeAlias, TypeVar

import msgspec

from holdfast._engine.context import Context
from holdfast._engine.packing import Packer
from holdfast._port import Inspection, Place, Portion
from holdfast._port.removal import merged, subtract
from holdfast._values.digests import Digests
from holdfast._values.records import Checkpoint, Progress, Run, Segment
from holdfast._values.runs import divided
from holdfast.errors import HoldfastError

R = TypeVar("R")

CHUNK = 1000
Read: TypeAlias = Callable[[Place], Awaitable[Portion[R]]]


class Problem(msgspec.Struct, frozen=True):
    """Something that is not as it was written; ``checkpoint`` if it is known which."""

    what: str
    thread: str | None = None
    checkpoint: str | None = None

    def __str__(self) -> str:
        where = f"thread {self.thread!r}: " if self.thread else ""
        which = f"checkpoint {self.checkpoint!r}: " if self.checkpoint else ""
        return f"{where}{which}{self.what}"


class Verification(msgspec.Struct, frozen=True):
    """The result of checking a store; true if there is no problem."""

    threads: int
    checkpoints: int
    segments: int
    problems: tuple[Problem, ...]

    @property
    def ok(self) -> bool:
        """Whether there is no problem."""
        return not self.problems

    def __bool__(self) -> bool:
        return self.ok


async def verify(
    context: Context, *, quick: bool = False, progress: Progress | None = None
) -> Verification:
    """Check storage, checksums, digests and references of the whole store.

    With ``quick`` only what the backend checks in its own files.
    """
    stored = await context.backend.check()
    if quick and stored:
        return Verification(0, 0, 0, tuple(map(Problem, stored)))
    if quick:
        facts = await context.backend.facts()
        return Verification(facts.threads, facts.checkpoints, facts.segments, ())
    inspection = await context.backend.inspect()
    check = _Check(inspection, context.packer, [Problem(text) for text in stored])
    try:
        await check.run(progress or (lambda _done, _of: None))
    finally:
        await inspection.close()
    return Verification(
        threads=check.threads,
        checkpoints=check.checkpoints,
        segments=check.segments,
        problems=tuple(check.problems),
    )


class _Check:
    """Reads everything in portions, and recomputes every digest."""

    def __init__(
        self, inspection: Inspection, packer: Packer, problems: list[Problem]
    ) -> None:
        self.inspection, self.packer, self.problems = inspection, packer, problems
        self.threads = self.checkpoints = self.segments = 0
        # The family whose checkpoints are being checked, and what is hashed of it.
        self.family, self.digests, self.hashed = 0, Digests(), list[Run]()

    async def run(self, progress: Progress) -> None:
        async for thread in self._all(self.inspection.threads):
            self.threads += thread.deleted_at is None
        async for _ in self._all(self.inspection.entries):
            pass  # reading an entry compares its checksum
        total = await self.inspection.count_checkpoints()
        progress(0, total)
        async for portion in self._portions(self.inspection.checkpoints):
            for family, found in groupby(portion, lambda c: c.family):
                await self._check_family(family, list(found))
            self.checkpoints += len(portion)
            progress(self.checkpoints, max(total, self.checkpoints))
        self.segments += len(self.digests.hashes)
        unused = await self.inspection.count_segments() - self.segments
        if unused > 0 and not self.problems:
            text = f"{unused} segments are not used by any checkpoint"
            self.problems.append(Problem(text))

    async def _all(self, read: Read[R]) -> AsyncIterator[R]:
        async for portion in self._portions(read):
            for record in portion:
                yield record

    async def _portions(self, read: Read[R]) -> AsyncIterator[tuple[R, ...]]:
        """The records of all portions; their damage becomes problems."""
        after: Place | None = Place()
        while after is not None:
            portion = await read(after)
            self.problems += map(Problem, portion.damage)
            yield portion.records
            after = portion.end

    async def _check_family(self, family: int, checkpoints: list[Checkpoint]) -> None:
        if family != self.family:
            self.segments += len(self.digests.hashes)
            self.family, self.digests, self.hashed = family, Digests(), []
        await self._hash_segments(checkpoints)
        for checkpoint in checkpoints:
            await self._recall_parent(checkpoint)
            self.problems += (
                Problem(what, checkpoint.thread, checkpoint.id)
                for what in self.digests.check(checkpoint)
            )
        self.digests.forget_all_but(CHUNK)

    async def _recall_parent(self, checkpoint: Checkpoint) -> None:
        """Have the parent at hand, also if it was checked long before."""
        id_ = checkpoint.parent
        if id_ is not None and not self.digests.knows(id_):
            parent = await self.inspection.checkpoint(self.family, id_)
            if parent is not None:
                self.digests.recall(parent)

    async def _hash_segments(self, checkpoints: Iterable[Checkpoint]) -> None:
        """Hash the segments that are new in some checkpoints; damaged have no hash."""
        runs = merged(run for c in checkpoints for run in c.runs)
        for part in divided(subtract(runs, self.hashed), CHUNK):
            for segment in await self.inspection.segments(self.family, part):
                if segment is not None:
                    await self._hash(segment)
        self.hashed = merged([*self.hashed, *runs])

    async def _hash(self, segment: Segment) -> None:
        try:
            [data] = await self.packer.unpack([segment])
        except HoldfastError as error:
            self.problems.append(Problem(str(error)))
            return
        self.digests.add(segment.number, data)
