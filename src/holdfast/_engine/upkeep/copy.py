"""Copying a whole store to another of any kind: ids, order, digests, journal."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Sequence

import msgspec
from msgspec.structs import replace

from holdfast._engine.context import Context
from holdfast._engine.upkeep.family_records import (
    CHECKPOINTS,
    FamilyReader,
    families_of,
    refuse_damaged,
    thread_portions,
)
from holdfast._port import Adoption, FamilyThreads, Inspection, Place
from holdfast._port.plans import family_owner
from holdfast._port.removal import merged, subtract
from holdfast._values.arguments import check_progress, checked_flag
from holdfast._values.records import Checkpoint, Progress, Run, ThreadRecord
from holdfast._values.runs import divided
from holdfast.errors import Conflict, Corrupt

# Above every sequence number.
LATEST = 1 << 62
# The number of segments copied at a time.
CHUNK = 500
# A copy of a family starts again this often if other writers remove checkpoints. Then
# it reads the family at one moment, for which the log has to keep the changes of
# others.
ATTEMPTS = 3
# The setting of a store that was copied into: the number of its last change when the
# copy was finished, or a mark that it is not finished.
COPY = "copy"
UNFINISHED = b"unfinished"


class Copied(msgspec.Struct, frozen=True):
    """The contents of a copy; ``skipped`` families had been copied before."""

    threads: int
    checkpoints: int
    segments: int
    journal_entries: int
    skipped: int


async def copy(
    source: Context,
    target: Context,
    progress: Progress | None = None,
    *,
    update: bool = False,
) -> Copied:
    """Copy everything into an empty store, or finish a copy that was interrupted.

    Each family is copied as it is at one moment; others may write meanwhile. With
    ``update`` the families are copied again that have changed since an earlier copy,
    and those that are gone are removed.
    """
    check_progress(progress)
    checked_flag(update, "update")
    inspection = await source.backend.inspect()
    try:
        reader = FamilyReader(source, inspection)
        await reader.find()
        place = CopyTarget(target, update=update)
        copier = _StoreCopy(source, place, inspection, reader)
        return await copier.run(progress or (lambda _done, _all: None))
    finally:
        await inspection.close()


class _StoreCopy:
    """A copy in progress, some families at a time."""

    def __init__(
        self,
        source: Context,
        target: CopyTarget,
        inspection: Inspection,
        reader: FamilyReader,
    ) -> None:
        self.source, self.target = source, target
        self.inspection, self.reader = inspection, reader
        self.taken = Taken()
        self.skipped = 0

    async def run(self, progress: Progress) -> Copied:
        await self.target.begin(self.reader.sizes)
        done, total = 0, len(self.reader.sizes)
        for batch in self.reader.batches():
            is_large = self.reader.sizes[batch[0]] > CHECKPOINTS
            families = await self.reader.read(batch, heads_only=is_large)
            await self.target.compare(families)
            for family in families:
                progress(done, total)
                if family.family in self.target.families:
                    self.skipped += 1
                    count = await self.inspection.count_saved(family.family, LATEST)
                    self.taken += taken_of(family, checkpoints=count)
                else:
                    self.taken += await self._copy(family, in_parts=is_large)
                done += 1
        await self.target.finish()
        progress(total, total)
        taken = self.taken
        return Copied(
            taken.threads,
            taken.checkpoints,
            taken.segments,
            taken.entries,
            self.skipped,
        )

    async def _copy(self, family: Adoption, *, in_parts: bool) -> Taken:
        await self.target.touch()
        segments = None if in_parts else await self._copy_segments(family)
        if segments is None:  # it is large, or another writer has removed some
            place, number = self.target.context, family.family
            return await FamilyCopy(self.source, place, self.inspection, number).run()
        # Without segments, this is the first part of the family.
        await self.target.context.backend.adopt(replace(family, anew=not segments))
        return taken_of(family, len(family.checkpoints), segments)

    async def _copy_segments(self, family: Adoption) -> int | None:
        """Copy the segments; gives their number, ``None`` if one is missing."""
        copied = 0
        runs = (run for checkpoint in family.checkpoints for run in checkpoint.runs)
        for run in divided(merged(runs), CHUNK):
            stored = await self.reader.segments(family.family, run)
            if stored is None:
                return None
            # An interrupted copy may have left segments of checkpoints that are gone.
            anew = not copied
            part = Adoption(
                family=family.family,
                owner=family_owner(family.threads),
                anew=anew,
                segments=tuple(stored),
            )
            await self.target.context.backend.adopt(part)
            copied += len(stored)
        return copied


class Taken(msgspec.Struct, frozen=True):
    """Counts of the records that were copied."""

    threads: int = 0
    checkpoints: int = 0
    segments: int = 0
    entries: int = 0

    def __add__(self, other: Taken) -> Taken:
        return Taken(
            self.threads + other.threads,
            self.checkpoints + other.checkpoints,
            self.segments + other.segments,
            self.entries + other.entries,
        )


def taken_of(family: Adoption, checkpoints: int, segments: int = 0) -> Taken:
    """Counts of the records of a family."""
    living = sum(thread.deleted_at is None for thread in family.threads)
    return Taken(living, checkpoints, segments, len(family.entries))


class FamilyCopy:
    """Copies a family as it was when its threads were read.

    Later saves have larger numbers and are left out. If another writer removes
    checkpoints meanwhile, the copy starts again.
    """

    def __init__(
        self, source: Context, target: Context, inspection: Inspection, family: int
    ) -> None:
        self._source, self._target = source, target
        self._inspection, self._family = inspection, family
        self._owner: str | None = None
        self._copied: list[Run] = []
        self._segments = self._checkpoints = 0

    async def run(self) -> Taken:
        for _ in range(ATTEMPTS):
            taken = await self._attempt()
            if taken is not None:
                return taken
        async with self._inspection.moment():
            taken = await self._attempt()
        assert taken is not None, "nothing changes within a moment"
        return taken

    async def _attempt(self) -> Taken | None:
        self._copied, self._segments, self._checkpoints = [], 0, 0
        await self._adopt(Adoption(family=self._family, anew=True))
        rescued = await self._inspection.families([self._family], heads_only=True)
        refuse_damaged(rescued.damage)
        if not rescued.threads:
            return Taken()
        [found] = families_of(rescued)
        self._owner = family_owner(found.threads)
        last = max(thread.changed for thread in found.threads)
        total = await self._inspection.count_saved(self._family, last)
        is_whole = await self._copy_all(last)
        if await self._inspection.count_saved(self._family, last) != total:
            return None
        if not is_whole:
            what = f"family {self._family}"
            raise Corrupt(what, "a segment is lost; salvage() it first")
        named = {id_ for move in found.moves for id_ in (move.source, move.target)}
        known = await self._numbers(named, found.checkpoints)
        await self._adopt(replace(found, checkpoints=(), known=known))
        return taken_of(found, self._checkpoints, self._segments)

    async def _copy_all(self, last: int) -> bool:
        """Copy all checkpoints up to a number; false if a segment is missing."""
        async for checkpoints in self._portions(last):
            if not await self._copy(checkpoints):
                return False
        return True

    async def _adopt(self, part: Adoption) -> None:
        await self._target.backend.adopt(replace(part, owner=self._owner))

    async def _portions(self, last: int) -> AsyncIterator[list[Checkpoint]]:
        after: Place | None = Place(self._family)
        while after is not None and after.family == self._family:
            portion = await self._inspection.checkpoints(after)
            refuse_damaged(portion.damage)
            yield [
                checkpoint
                for checkpoint in portion.records
                if checkpoint.family == self._family and checkpoint.seq <= last
            ]
            after = portion.end

    async def _copy(self, checkpoints: Sequence[Checkpoint]) -> bool:
        """Copy checkpoints after the segments they use."""
        runs = merged({run for c in checkpoints for run in c.runs})
        for run in divided(subtract(runs, self._copied), CHUNK):
            if not await self._copy_run(run):
                return False
        self._copied = merged([*self._copied, *runs])
        known = await self._numbers((c.parent for c in checkpoints), checkpoints)
        saved = tuple(checkpoints)
        await self._adopt(Adoption(family=self._family, checkpoints=saved, known=known))
        self._checkpoints += len(checkpoints)
        return True

    async def _copy_run(self, run: Run) -> bool:
        [found] = await self._inspection.segments([(self._family, run)])
        stored = [segment for segment in found if segment is not None]
        if len(stored) < len(found):
            return False
        await self._adopt(Adoption(family=self._family, segments=tuple(stored)))
        self._segments += len(stored)
        return True

    async def _numbers(
        self, ids: Iterable[str | None], here: Iterable[Checkpoint]
    ) -> dict[str, int]:
        """The sequence numbers of checkpoints that are not among those at hand."""
        known = {checkpoint.id: checkpoint.seq for checkpoint in here}
        for id_ in ids:
            if id_ is not None and id_ not in known:
                found = await self._inspection.checkpoint(self._family, id_)
                if found is not None:
                    known[id_] = found.seq
        return known


class CopyTarget:
    """The target of a copy: its contents, and the changes that are allowed.

    Without ``update`` nothing in it is replaced. With it, families are replaced that
    have changed in the source. If something was saved in the target itself, an update
    would lose it and is refused.
    """

    def __init__(self, context: Context, *, update: bool) -> None:
        self.context = context
        self._update = update
        self.families: set[int] = set()
        self._gone: set[int] = set()
        self._is_touched = False

    async def begin(self, ours: Collection[int]) -> None:
        """Find families of the source in the target; refuses one that is no copy."""
        last, example = await self._look(ours)
        if example is None:
            return
        said = await self.context.backend.setting(COPY)
        if said is None and self._update:
            raise _changed(example)
        if said not in (None, UNFINISHED) and int(said) < last:
            raise _changed(example)
        if self._gone and not self._update:
            raise _not_empty(example)

    async def touch(self) -> None:
        """Note before the first change that the copy is not complete from now on."""
        if not self._is_touched:
            await self.context.backend.setting(COPY, UNFINISHED, replace=True)
        self._is_touched = True

    async def _look(self, ours: Collection[int]) -> tuple[int, ThreadRecord | None]:
        """The number of the last change, and a thread, preferably not the source's."""
        last, example = 0, None
        inspection = await self.context.backend.inspect()
        try:
            async for threads in thread_portions(inspection):
                for thread in threads:
                    last = max(last, thread.changed)
                    is_ours = thread.family in ours
                    (self.families if is_ours else self._gone).add(thread.family)
                    example = thread if example is None or not is_ours else example
        finally:
            await inspection.close()
        return last, example

    async def compare(self, families: Iterable[Adoption]) -> None:
        """Leave families out that differ from the source's, to be copied again."""
        mine = {
            _moment(thread): thread
            for family in families
            for thread in family.threads
            if family.family in self.families
        }
        numbers = tuple({thread.family for thread in mine.values()})
        found = await self.context.backend.scan(FamilyThreads(numbers))
        theirs = {_moment(thread): thread for thread in found}
        born = {thread.number: _birth(thread) for thread in mine.values()}
        for moment, thread in (mine | theirs).items():
            if moment in mine and moment in theirs:
                continue
            is_ours = born.get(thread.number, _birth(thread)) == _birth(thread)
            if not self._update or not is_ours:
                raise _not_empty(thread)
            self.families.discard(thread.family)

    async def finish(self) -> None:
        """Remove families that the source has lost; note that the copy is complete."""
        await self.touch()
        for family in self._gone:
            await self.context.backend.adopt(Adoption(family=family, anew=True))
        last, _ = await self._look(())
        await self.context.backend.setting(COPY, b"%d" % last, replace=True)


def _moment(thread: ThreadRecord) -> tuple[int, str, int, str | None]:
    """A value that differs whenever a thread has changed."""
    head = thread.head.id if thread.head else None
    return thread.number, thread.id, thread.changed, head


def _birth(thread: ThreadRecord) -> tuple[str, int]:
    """A value that never changes in a thread."""
    return thread.id, thread.created_at


def _not_empty(thread: ThreadRecord) -> Conflict:
    return Conflict(
        f"the other store holds {thread.id!r}, which is not of this one, or has changed"
        " since it was copied; copy into an empty store, or bring an earlier copy up to"
        " date with update=True",
        code="not_empty",
        thread=thread.id,
    )


def _changed(thread: ThreadRecord) -> Conflict:
    return Conflict(
        f"the other store holds {thread.id!r} and is no copy, or something was saved in"
        " it since it was copied; copy into an empty store",
        code="not_empty",
        thread=thread.id,
    )
