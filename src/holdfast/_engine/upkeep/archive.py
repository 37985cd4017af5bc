"""Writing a portable archive, and importing one into a store."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import BinaryIO

import msgspec

from holdfast._engine.context import Context
from holdfast._engine.upkeep.copy import read_run
from holdfast._port import Admission, Adoption, Inspection, ThreadKey
from holdfast._values.records import EPOCH, Progress, Run, Segment, checked_name
from holdfast._values.runs import divided
from holdfast.archive._contents import (
    Contents,
    Heading,
    Imported,
    chosen,
    fingerprint,
    heading_of,
    living,
    numbered,
    runs_of,
    sizes_of,
)
from holdfast.archive._frames import FrameWriter
from holdfast.archive._reader import ArchiveReader, Source, opened
from holdfast.archive._records import encoded, forms_of
from holdfast.archive._target import Target, new_file
from holdfast.errors import Conflict, Corrupt, Unstorable

CHUNK = 64
NAMES = 500


class ExportSelection(msgspec.Struct, frozen=True):
    """Which threads to export, and from which time on."""

    threads: Collection[str] | None = None
    since: int | None = None


def selected(threads: Iterable[str] | None, since: datetime | None) -> ExportSelection:
    """The selection a caller asked for, checked."""
    names = None if threads is None else [checked_name(name) for name in threads]
    if since is not None and since.tzinfo is None:
        raise Unstorable("since", "needs a time zone: give it tzinfo=UTC")
    at = None if since is None else (since - EPOCH) // timedelta(microseconds=1)
    return ExportSelection(names, at)


# --- exporting ------------------------------------------------------------------------


async def export(
    context: Context, to: Target, selection: ExportSelection, progress: Progress | None
) -> Contents:
    """Write an archive of one moment of the store."""
    inspection = await context.backend.inspect()
    try:
        rescued = await inspection.rescue()
        if rescued.damage:
            raise Corrupt("the store", f"{rescued.damage[0]}; salvage() it first")
        families = chosen(rescued, selection.threads, selection.since)
        with new_file(to) as file:
            writer = _ArchiveExport(context, inspection, file)
            return await writer.run(families, progress or _ignore)
    finally:
        await inspection.close()


class _ArchiveExport:
    """Writes families to the file of an archive."""

    def __init__(
        self, context: Context, inspection: Inspection, file: BinaryIO
    ) -> None:
        self.context, self.inspection = context, inspection
        self.frames = FrameWriter(file)
        self.segments = self.done = 0

    async def run(self, families: Sequence[Adoption], progress: Progress) -> Contents:
        counted = numbered(families)
        total = sum(map(_weight, counted))
        progress(0, total)
        self.frames.write("archive", encoded(heading_of(counted)))
        for stored, family in zip(families, counted, strict=True):
            self._write_records(family)
            for part in divided(runs_of(family), CHUNK):
                progress(self.done, total)
                await self._write_segments(stored.family, part)
        progress(total, total)
        return Contents(
            tuple(name for family in families for name in living(family)),
            sum(len(family.checkpoints) for family in families),
            self.segments,
            sum(len(family.entries) for family in families),
            self.frames.end(),
        )

    def _write_records(self, family: Adoption) -> None:
        self.frames.write("family", encoded(sizes_of(family)))
        for kind, form in forms_of(family):
            self.frames.write(kind, encoded(form))
        self.done += len(family.checkpoints)

    async def _write_segments(self, family: int, part: Run) -> None:
        stored = await read_run(self.inspection, family, part)
        for segment in stored:
            self.frames.write("segment", segment.data)
        self.segments += len(stored)
        self.done += len(stored)


def _weight(family: Adoption) -> int:
    """The number of steps that a family is in the progress."""
    return len(family.checkpoints) + sizes_of(family).segments


def _ignore(_done: int, _total: int) -> None:
    """The progress of a caller that does not ask for it."""


# --- importing ------------------------------------------------------------------------


async def import_archive(
    context: Context, source: Source, *, dry_run: bool, progress: Progress | None
) -> Imported:
    """Import an archive, all of it or nothing; families that are there are skipped."""
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
        """What would be imported, and the digest of the archive."""
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
    """The families that the store has already; refuses other threads of their names."""
    names = [name for line in heading.families for name in line.threads]
    if not await _any_lives(context, names):
        return set()
    fingerprints = await _fingerprints(context)
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


async def _any_lives(context: Context, names: Sequence[str]) -> bool:
    for first in range(0, len(names), NAMES):
        keys = [ThreadKey(name) for name in names[first : first + NAMES]]
        found = await context.backend.read(keys)
        if any(thread and thread.deleted_at is None for thread in found):
            return True
    return False


async def _fingerprints(context: Context) -> dict[str, str]:
    """The fingerprint of the family by the name of each living thread."""
    inspection = await context.backend.inspect()
    try:
        rescued = await inspection.rescue()
    finally:
        await inspection.close()
    found: dict[str, str] = {}
    for family in chosen(rescued, None, None):
        found |= dict.fromkeys(living(family), fingerprint(family))
    return found
