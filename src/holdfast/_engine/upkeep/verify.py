"""Checking that everything stored is as it was written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from holdfast._engine.context import Context
from holdfast._engine.packing import Packer
from holdfast._port import Inspection, Rescued
from holdfast._port.removal import merged
from holdfast._values.digests import Digests
from holdfast._values.records import Checkpoint, Progress, Segment
from holdfast._values.runs import divided
from holdfast.errors import HoldfastError

CHUNK = 1000


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
    try:
        rescued = await inspection.rescue()
        check = _Check(inspection, context.packer, rescued)
        await check.run(progress or (lambda _done, _of: None))
        unused = await inspection.count_segments() - check.segments
    finally:
        await inspection.close()
    problems = [Problem(text) for text in (*stored, *rescued.damage)]
    problems += check.problems
    if unused > 0 and not problems:
        problems.append(Problem(f"{unused} segments are not used by any checkpoint"))
    return Verification(
        threads=sum(t.deleted_at is None for t in rescued.threads),
        checkpoints=len(rescued.checkpoints),
        segments=check.segments,
        problems=tuple(problems),
    )


class _Check:
    """Reads every segment and recomputes every digest."""

    def __init__(
        self, inspection: Inspection, packer: Packer, rescued: Rescued
    ) -> None:
        self.inspection, self.packer, self.rescued = inspection, packer, rescued
        self.problems: list[Problem] = []
        self.segments = 0

    async def run(self, progress: Progress) -> None:
        families: dict[int, list[Checkpoint]] = defaultdict(list)
        for checkpoint in self.rescued.checkpoints:
            families[checkpoint.family].append(checkpoint)
        done = 0
        for family, checkpoints in families.items():
            progress(done, len(self.rescued.checkpoints))
            digests = Digests()
            await self._hash_segments(family, checkpoints, digests)
            for checkpoint in checkpoints:
                self.problems += (
                    Problem(what, checkpoint.thread, checkpoint.id)
                    for what in digests.check(checkpoint)
                )
            done += len(checkpoints)
        progress(done, done)

    async def _hash_segments(
        self, family: int, checkpoints: Iterable[Checkpoint], digests: Digests
    ) -> None:
        """The hashes of a family's segments; damaged ones have none."""
        runs = merged(run for c in checkpoints for run in c.runs)
        for part in divided(runs, CHUNK):
            for segment in await self.inspection.segments(family, part):
                if segment is not None:
                    await self._hash(segment, digests)
        self.segments += len(digests.hashes)

    async def _hash(self, segment: Segment, digests: Digests) -> None:
        try:
            [data] = await self.packer.unpack([segment])
        except HoldfastError as error:
            self.problems.append(Problem(str(error)))
            return
        digests.add(segment.number, data)
