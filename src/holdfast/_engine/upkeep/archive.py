"""Writing a portable archive, and importing one into a store."""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Collection,
    Iterable,
    Iterator,
    Sequence,
)
from datetime import datetime
from typing import BinaryIO

import msgspec

from holdfast._engine.context import Context
from holdfast._engine.upkeep.family_records import FamilyReader
from holdfast._port import Admission, Adoption, ThreadKey
from holdfast._values.arguments import check_progress, checked_flag, checked_time
from holdfast._values.records import (
    Progress,
    Segment,
    ThreadRecord,
    checked_stored_name,
)
from holdfast._values.runs import divided
from holdfast.archive._contents import (
    Contents,
    Heading,
    Imported,
    exported,
    fingerprint,
    living,
    runs_of,
)
from holdfast.archive._reader import ArchiveReader, Source, opened
from holdfast.archive._spool import Spool
from holdfast.archive._target import Target, new_file, scratch_file
from holdfast.errors import Conflict, Corrupt, NotFound

CHUNK = 64
NAMES = 500


class ExportSelection(msgspec.Struct, frozen=True):
    """The threads to export, and the time from which on."""

    threads: Collection[str] | None = None
    since: int | None = None


def selected(threads: Iterable[str] | None, since: datetime | None) -> ExportSelection:
    """The selection a caller asked for, checked."""
    names = None if threads is None else [checked_stored_name(name) for name in threads]
    return ExportSelection(names, checked_time(since, "since"))


# --- exporting ------------------------------------------------------------------------


async def export(
    context: Context, to: Target, selection: ExportSelection, progress: Progress | None
) -> Contents:
    """Write an archive; each family is in it as it was at one moment."""
    check_progress(progress)
    inspection = await context.backend.inspect()
    try:
        reader = FamilyReader(context, inspection)
        if selection.threads is None:
            await reader.find()
        else:
            await reader.choose(await _families_of(context, selection.threads))
        with new_file(to) as file, scratch_file(to) as scratch:
            exporting = _ArchiveExport(context, reader, Spool(scratch))
            await exporting.read(selection.since, progress or _ignore)
            return exporting.spool.write(file)
    finally:
        await inspection.close()


async def _families_of(context: Context, names: Collection[str]) -> list[int]:
    """The families of some threads, all of which must exist."""
    found = {t.id: t.family async for t in _living(context, list(names))}
    for name in names:
        if name not in found:
            text = f"there is no thread {name!r} to export; see threads()"
            raise NotFound(text, thread=name)
    return list(found.values())


class _ArchiveExport:
    """Reads families out of a store for an archive."""

    def __init__(self, context: Context, reader: FamilyReader, spool: Spool) -> None:
        self.context, self.reader, self.spool = context, reader, spool

    async def read(self, since: int | None, progress: Progress) -> None:
        sizes = self.reader.sizes
        # A step for each family and each checkpoint that it had.
        done, total = 0, sum(sizes.values()) + len(sizes)
        for batch in self.reader.batches():
            for family in await self.reader.read(batch):
                progress(done, total)
                await self._add(family, since)
                done += sizes[family.family] + 1
        progress(total, total)

    async def _add(self, family: Adoption, since: int | None) -> None:
        """Add a family as it is now, unless no part of it is to be exported."""
        stored: Adoption | None = family
        while stored is not None and (chosen := exported(stored, since)) is not None:
            if await self.spool.add(chosen, self._segments(chosen)):
                return
            stored = await self.reader.read_again(stored)

    async def _segments(self, family: Adoption) -> AsyncIterator[bytes | None]:
        for part in divided(runs_of(family), CHUNK):
            stored = await self.reader.segments(family.family, part)
            if stored is None:
                yield None
                return
            for segment in stored:
                yield segment.data


def _ignore(_done: int, _total: int) -> None:
    """The progress of a caller that does not ask for it."""


# --- importing ------------------------------------------------------------------------


async def import_archive(
    context: Context, source: Source, *, dry_run: bool, progress: Progress | None
) -> Imported:
    """Import an archive, all of it or nothing; families that are there are skipped."""
    checked_flag(dry_run, "dry_run")
    check_progress(progress)
    with opened(source) as (file, name):
        reader = ArchiveReader(file, name)
        there = await _already_there(context, reader.heading)
        incoming = _ArchiveImport(file, name, there, progress or _ignore)
        # Read all of it before writing: a damaged archive then never takes the lock.
        imported, digest = incoming.check()
        if dry_run or not imported.threads:
            return imported
        admission = Admission(
            changes=reader.heading.changes,
            threads=reader.heading.threads,
            families=lambda: incoming.families(digest),
        )
        await context.backend.admit(admission)
    return imported


class _ArchiveImport:
    """Reads an archive without the families that the store has already."""

    def __init__(
        self, file: BinaryIO, name: str, there: Collection[int], progress: Progress
    ) -> None:
        self.file, self.name, self.there = file, name, there
        self.progress = progress
        self.done = self.total = 0

    def check(self) -> tuple[Imported, str]:
        """A preview of the import, and the digest of the archive."""
        reader = ArchiveReader(self.file, self.name)
        new: list[str] = []
        old: list[str] = []
        checkpoints = segments = entries = 0
        for number, family in enumerate(reader.families()):
            if number in self.there:
                old += living(family.records)
                continue
            new += living(family.records)
            checkpoints += len(family.records.checkpoints)
            segments += sum(1 for _ in family.segments)
            entries += len(family.records.entries)
        imported = Imported(tuple(new), checkpoints, segments, entries, tuple(old))
        self.total = checkpoints + segments
        return imported, reader.sha256

    def families(self, digest: str) -> Iterator[tuple[Adoption, Iterable[Segment]]]:
        """The families with their segments."""
        reader = ArchiveReader(self.file, self.name)
        self.done = 0
        self.progress(0, self.total)
        for number, family in enumerate(reader.families()):
            if number not in self.there:
                self.done += len(family.records.checkpoints)
                yield family.records, self._counted(family.segments)
        if reader.sha256 != digest:
            raise Corrupt(self.name, "it was changed while it was read")
        self.progress(self.total, self.total)

    def _counted(self, segments: Iterable[Segment]) -> Iterator[Segment]:
        for segment in segments:
            if self.done % CHUNK == 0:
                self.progress(self.done, self.total)
            self.done += 1
            yield segment


async def _already_there(context: Context, heading: Heading) -> set[int]:
    """The families that exist in the store; refuses other threads of the same names."""
    names = [name for line in heading.families for name in line.threads]
    families = {thread.family async for thread in _living(context, names)}
    fingerprints = await _fingerprints(context, families) if families else {}
    there: set[int] = set()
    for number, line in enumerate(heading.families):
        found = {fingerprints[name] for name in line.threads if name in fingerprints}
        if found == {line.sha256}:
            there.add(number)
        elif found:
            name = next(name for name in line.threads if name in fingerprints)
            raise Conflict(
                f"thread {name!r} is there with other content; delete it first, or"
                " import into another store; nothing was imported",
                code="thread_exists",
                thread=name,
            )
    return there


async def _living(
    context: Context, names: Sequence[str]
) -> AsyncIterator[ThreadRecord]:
    """The threads of some names that are there and not deleted."""
    for first in range(0, len(names), NAMES):
        keys = [ThreadKey(name) for name in names[first : first + NAMES]]
        for thread in await context.backend.read(keys):
            if thread is not None and thread.deleted_at is None:
                yield thread


async def _fingerprints(context: Context, families: Iterable[int]) -> dict[str, str]:
    """The fingerprint of their family by the names of the living threads of some."""
    inspection = await context.backend.inspect()
    found: dict[str, str] = {}
    try:
        reader = FamilyReader(context, inspection)
        await reader.choose(families)
        for batch in reader.batches():
            for stored in await reader.read(batch):
                family = exported(stored, None)
                if family is not None:
                    found |= dict.fromkeys(living(family), fingerprint(family))
    finally:
        await inspection.close()
    return found
