"""Checking that all stored content is as it was written."""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Sequence,
)
from itertools import groupby
from typing import TypeAlias, TypeVar

import msgspec

from holdfast._engine.context import Context
from holdfast._engine.upkeep.erase import UNFINISHED, is_unfinished
from holdfast._engine.upkeep.seal import broken
from holdfast._port import Inspection, Place, Portion
from holdfast._port.removal import merged, subtract
from holdfast._values.arguments import check_progress, checked_flag
from holdfast._values.digests import Digests
from holdfast._values.records import (
    Checkpoint,
    Progress,
    Run,
    ThreadRecord,
    decode_metadata,
)
from holdfast._values.runs import count_segments, divided
from holdfast.errors import Corrupt

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
        """True if there is no problem."""
        return not self.problems

    def __bool__(self) -> bool:
        return self.ok


async def verify(
    context: Context,
    *,
    quick: bool = False,
    seal: str | None = None,
    progress: Progress | None = None,
) -> Verification:
    """Check storage, checksums, digests and references of the whole store.

    With ``quick`` only what the backend checks in its own files. With a ``seal`` also
    whether the store still holds what it held then.
    """
    check_progress(progress)
    checked_flag(quick, "quick")
    stored = await context.backend.check()
    if seal is not None:
        stored += await broken(context, seal)
    if quick and stored:
        return Verification(0, 0, 0, tuple(map(Problem, stored)))
    if quick:
        facts = await context.backend.facts()
        return Verification(facts.threads, facts.checkpoints, facts.segments, ())
    if await is_unfinished(context):
        stored.append(UNFINISHED)
    inspection = await context.backend.inspect()
    check = _Check(inspection, [Problem(text) for text in stored])
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


class _Family:
    """A family whose checkpoints are being checked, and its hashes so far."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.digests = Digests()
        self.hashed: list[Run] = []

    def unhashed(self, checkpoints: Iterable[Checkpoint]) -> Iterator[Run]:
        """The runs of checkpoints that were not given before."""
        runs = merged(run for c in checkpoints for run in c.runs)
        if not self.hashed:  # most families are small: do no more than is needed
            self.hashed = runs
            return divided(runs, CHUNK)
        before, self.hashed = self.hashed, merged([*self.hashed, *runs])
        return divided(subtract(runs, before), CHUNK)


def _damaged_metadata(threads: Iterable[ThreadRecord]) -> Iterator[Problem]:
    for thread in threads:
        try:
            decode_metadata(thread.encoded_metadata)
        except Corrupt as error:
            yield Problem(str(error), thread.id)


class _Check:
    """Reads everything in portions, and recomputes every digest.

    Other writers may save and prune between two portions; a checkpoint then does not
    match what is read later. Suspected problems are checked again at one moment.
    """

    def __init__(self, inspection: Inspection, problems: list[Problem]) -> None:
        self.inspection, self.problems = inspection, problems
        self.threads = self.checkpoints = self.segments = self.unused = 0
        self.lost: list[int] = []

    async def run(self, progress: Progress) -> None:
        async for _, threads in self._portions(self.inspection.threads):
            self.threads += sum(thread.deleted_at is None for thread in threads)
            self.problems += _damaged_metadata(threads)
        async for _, _ in self._portions(self.inspection.entries):
            pass  # reading an entry compares its checksum
        total = await self.inspection.count_checkpoints()
        progress(0, total)
        digests = _DigestCheck(self.inspection)
        async for after, checkpoints in self._portions(self.inspection.checkpoints):
            if await digests.check(checkpoints):
                self.problems += await self._confirmed(after)
            await self._count_segments(digests.take_ended())
            self.checkpoints += len(checkpoints)
            progress(self.checkpoints, max(total, self.checkpoints))
        await self._count_segments([digests.last])
        for name in await self.inspection.headed_by(self.lost) if self.lost else ():
            text = f"the head of thread {name!r} is damaged or missing"
            self.problems.append(Problem(text))
        self.unused += await self.inspection.count_strays()
        if self.unused > 0 and not self.problems:
            text = f"{self.unused} segments are not used by any checkpoint"
            self.problems.append(Problem(text))

    async def _portions(
        self, read: Read[R]
    ) -> AsyncIterator[tuple[Place, tuple[R, ...]]]:
        """The records of all portions; their damage becomes problems."""
        after: Place | None = Place()
        while after is not None:
            portion = await read(after)
            self.problems += map(Problem, portion.damage)
            self.lost += portion.lost
            yield after, portion.records
            after = portion.end

    async def _confirmed(self, after: Place) -> list[Problem]:
        """The problems of a portion, read again with all segments that it uses."""
        async with self.inspection.moment():
            portion = await self.inspection.checkpoints(after)
            again = _DigestCheck(self.inspection)
            return await again.check(portion.records)

    async def _count_segments(self, families: Sequence[_Family]) -> None:
        """Compare the stored segments of families with those that checkpoints use."""
        numbers = [family.number for family in families]
        stored = await self.inspection.count_segments(numbers) if numbers else ()
        for family, count in zip(families, stored, strict=True):
            used = len(family.digests.hashes)
            self.segments += used
            if count > used:
                self.unused += await self._unused(family.number)

    async def _unused(self, family: int) -> int:
        """The number of segments of a family that no checkpoint uses, at one moment."""
        runs: list[Run] = []
        async with self.inspection.moment():
            after: Place | None = Place(family)
            while after is not None and after.family == family:
                portion = await self.inspection.checkpoints(after)
                own = (c for c in portion.records if c.family == family)
                runs = merged([*runs, *(run for c in own for run in c.runs)])
                after = portion.end
            [stored] = await self.inspection.count_segments([family])
        return max(0, stored - count_segments(runs))


class _DigestCheck:
    """Recomputes the digests of checkpoints that come in portions."""

    def __init__(self, inspection: Inspection) -> None:
        self.inspection = inspection
        self.problems: list[Problem] = []
        # A family may go on in the next portion.
        self.last = _Family(0)
        self._ended: list[_Family] = []

    def take_ended(self) -> list[_Family]:
        """The families behind which others came, each once."""
        ended, self._ended = self._ended, []
        return ended

    async def check(self, portion: Iterable[Checkpoint]) -> list[Problem]:
        """The problems of the checkpoints of a portion."""
        self.problems = []
        groups: list[tuple[_Family, list[Checkpoint]]] = []
        for number, found in groupby(portion, lambda c: c.family):
            if number != self.last.number:
                self._ended.append(self.last)
                self.last = _Family(number)
            groups.append((self.last, list(found)))
        await self._hash_segments(groups)
        for family, checkpoints in groups:
            await self._check_digests(family, checkpoints)
        return self.problems

    async def _hash_segments(
        self, groups: Iterable[tuple[_Family, list[Checkpoint]]]
    ) -> None:
        """Hash the new segments of some checkpoints, many segments in one request."""
        wanted = [
            (family, run)
            for family, checkpoints in groups
            for run in family.unhashed(checkpoints)
        ]
        for part in _parts(wanted):
            runs = [(family.number, run) for family, run in part]
            found = await self.inspection.segments(runs)
            for (family, _), run in zip(part, found, strict=True):
                for segment in run:
                    if segment is not None:
                        family.digests.add(segment.number, segment.data)

    async def _check_digests(
        self, family: _Family, checkpoints: Iterable[Checkpoint]
    ) -> None:
        digests = family.digests
        for checkpoint in checkpoints:
            if checkpoint.parent is not None and not digests.knows(checkpoint.parent):
                # The parent was checked long before, or comes later, or is lost.
                parent = checkpoint.parent
                found = await self.inspection.checkpoint(family.number, parent)
                if found is not None:
                    digests.recall(found)
            self.problems += [
                Problem(what, checkpoint.thread, checkpoint.id)
                for what in digests.check(checkpoint)
            ]
        digests.forget_all_but(CHUNK)


def _parts(wanted: list[tuple[_Family, Run]]) -> Iterator[list[tuple[_Family, Run]]]:
    """Parts that have about as many segments as one request should bring."""
    part: list[tuple[_Family, Run]] = []
    left = CHUNK
    for family, run in wanted:
        part.append((family, run))
        left -= run.last - run.first + 1
        if left <= 0:
            yield part
            part, left = [], CHUNK
    if part:
        yield part
