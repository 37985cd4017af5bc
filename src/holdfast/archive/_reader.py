"""Reads an archive family by family, and checks all that can be checked."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from tempfile import TemporaryFile
from typing import BinaryIO, cast

import msgspec

from holdfast._port import Adoption
from holdfast._port.removal import merged
from holdfast._values import codec
from holdfast._values.arguments import checked_path, kind_of
from holdfast._values.digests import Digests
from holdfast._values.manifest import decode_manifest
from holdfast._values.records import Checkpoint, Run, Segment, decode_metadata
from holdfast.archive._contents import (
    Contents,
    Heading,
    fingerprint,
    living,
    runs_of,
    seqs_of,
    sizes_of,
)
from holdfast.archive._frames import ArchiveCorrupt, FrameReader
from holdfast.archive._records import FORMS, Forms, Sizes, decoded, family_of
from holdfast.errors import HoldfastError, NotFound, Unstorable

Source = str | os.PathLike[str] | BinaryIO

_PLURALS = {
    "thread": "threads",
    "checkpoint": "checkpoints",
    "entry": "entries",
    "move": "moves",
}
# Errors that decoding and checking raise for wrong records.
_WRONG = (ValueError, KeyError, TypeError, AssertionError, RuntimeError, HoldfastError)


class ArchiveFamily(msgspec.Struct, frozen=True):
    """A family; its segments can be read once, before the next family is read."""

    records: Adoption
    segments: Iterator[Segment]


class ArchiveReader:
    """Reads an archive once, from its beginning to its end."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        file.seek(0)
        self._frames = FrameReader(file, name)
        try:
            payload = self._frames.read("archive").payload
            self.heading = msgspec.json.decode(payload, type=Heading)
        except ValueError as error:
            raise self._frames.damage(f"its heading: {error}") from None
        self._names: set[str] = set()
        self._seqs: set[int] = set()
        self._changes: set[int] = set()
        self._numbers: set[int] = set()
        self._counts = [0, 0, 0]
        self.sha256 = ""

    def families(self) -> Iterator[ArchiveFamily]:
        """The families; raises `Corrupt` as soon as something is found to be wrong."""
        for line in self.heading.families:
            records = self._records()
            if line.sha256 != fingerprint(records):
                raise self._frames.damage("a family is not the one in its heading")
            if list(line.threads) != living(records):
                raise self._frames.damage("its heading names other threads")
            self._note(records)
            family = ArchiveFamily(records, self._segments(records))
            yield family
            for _ in family.segments:  # check those that the caller did not read
                pass
        self._check_numbers()
        self.sha256 = self._frames.end()

    def contents(self) -> Contents:
        """The contents, once all families were read."""
        names = tuple(name for f in self.heading.families for name in f.threads)
        checkpoints, segments, entries = self._counts
        return Contents(names, checkpoints, segments, entries, self.sha256)

    def _records(self) -> Adoption:
        try:
            sizes = decoded(self._frames.read("family").payload, Sizes)
            forms = Forms([], [], [], [])
            for kind, form in FORMS.items():
                found = getattr(forms, _PLURALS[kind])
                for _ in range(getattr(sizes, _PLURALS[kind])):
                    found.append(decoded(self._frames.read(kind).payload, form))
            records = family_of(forms)
            _check_records(records)
            if sizes_of(records) != sizes:
                raise ValueError("it has other sizes than it says")
        except _WRONG as error:
            if isinstance(error, ArchiveCorrupt):
                raise
            raise self._frames.damage(f"a family: {error}") from None
        return records

    def _segments(self, records: Adoption) -> Iterator[Segment]:
        digests = Digests()
        for run in runs_of(records):
            for number in range(run.first, run.last + 1):
                data = self._frames.read("segment").payload
                digests.add(number, data)
                self._counts[1] += 1
                yield Segment(number, data)
        for checkpoint in records.checkpoints:
            for what in digests.check(checkpoint):
                where = f"thread {checkpoint.thread!r}: checkpoint {checkpoint.id!r}"
                raise self._frames.damage(f"{where}: {what}")

    def _note(self, records: Adoption) -> None:
        names, numbers = living(records), {t.number for t in records.threads}
        changes = [c.seq for c in records.checkpoints]
        changes += (e.seq for e in records.entries)
        changes += (m.seq for m in records.moves)
        is_new = self._names.isdisjoint(names) and self._numbers.isdisjoint(numbers)
        # Only the numbers of changes are unique. A record of a key that is there gives
        # its thread the next number, but makes no change, so that the number is free.
        if not is_new or not self._changes.isdisjoint(changes):
            raise self._frames.damage("two families have the same name or number")
        self._names.update(names)
        self._numbers.update(numbers)
        self._seqs.update(seqs_of(records))
        self._changes.update(changes)
        self._counts[0] += len(records.checkpoints)
        self._counts[2] += len(records.entries)

    def _check_numbers(self) -> None:
        """Check that numbers run from 1 without a gap, so that none can be huge."""
        for found, claimed in (
            (self._seqs, self.heading.changes),
            (self._numbers, self.heading.threads),
        ):
            if len(found) != claimed or (found and max(found) != claimed):
                raise self._frames.damage("its numbers are not counted from 1")


def _check_records(records: Adoption) -> None:
    """Raise an error of `_WRONG` for records that contradict one another."""
    _check_order(records)
    _check_distinct([c.id for c in records.checkpoints], "checkpoints of one id")
    places = [(e.thread, e.checkpoint, e.key) for e in records.entries]
    _check_distinct(places, "journal entries of one key")
    for thread in records.threads:
        decode_metadata(thread.encoded_metadata)
        if thread.deleted_at is not None and thread.head is not None:
            raise ValueError("a deleted thread has a head")
    for checkpoint in records.checkpoints:
        _check_checkpoint(checkpoint)
    for entry in records.entries:
        codec.decode(entry.data)


def _check_order(records: Adoption) -> None:
    changes: list[int] = []
    for found in (records.checkpoints, records.entries, records.moves):
        numbers = [record.seq for record in found]
        if any(a >= b for a, b in pairwise(numbers)):
            raise ValueError("its changes are not in order")
        changes += numbers
    _check_distinct(changes, "changes of one number")
    threads = [thread.number for thread in records.threads]
    if any(a >= b for a, b in pairwise(threads)):
        raise ValueError("its threads are not in order")


def _check_distinct(found: Sequence[Hashable], what: str) -> None:
    if len(set(found)) < len(found):
        raise ValueError(f"it has two {what}")


def _check_checkpoint(checkpoint: Checkpoint) -> None:
    decode_metadata(checkpoint.encoded_metadata)
    manifest = decode_manifest(checkpoint)
    if manifest.measured() != (checkpoint.runs, checkpoint.size):
        raise ValueError(f"the manifest of {checkpoint.id!r} does not fit it")
    if manifest.encoded() != checkpoint.manifest:
        raise ValueError(f"the manifest of {checkpoint.id!r} is not written as it is")
    # A state has each segment once: else a few segments could be a huge state.
    if _count(checkpoint.runs) != _count(merged(checkpoint.runs)):
        raise ValueError(f"the runs of {checkpoint.id!r} overlap")


def _count(runs: Iterable[Run]) -> int:
    return sum(run.last - run.first + 1 for run in runs)


# --- opening --------------------------------------------------------------------------


@contextmanager
def opened(source: Source) -> Generator[tuple[BinaryIO, str]]:
    """A file that can be read twice, and its name for errors."""
    if isinstance(source, str | os.PathLike):
        name = checked_path(source, "source")
        try:
            file = open(name, "rb")  # noqa: SIM115 - closed below
        except OSError as error:
            text = f"{name} cannot be read: {error.strerror}; check the path"
            raise NotFound(text, code="cannot_open") from error
        with file:
            yield file, name
    elif not callable(getattr(source, "seekable", None)):
        text = f"must be a path, or a file open for reading, not {kind_of(source)}"
        raise Unstorable("source", text)
    elif source.seekable():
        yield source, "the archive"
    else:
        with TemporaryFile() as copy:
            shutil.copyfileobj(source, copy)
            yield cast("BinaryIO", copy), "the archive"


def check(source: Source) -> Contents:
    """Read an archive from end to end and check all of it; needs no store.

    Raises `Corrupt` if anything is not as it was written, `FormatMismatch` if it is no
    archive or a newer one.
    """
    with opened(source) as (file, name):
        reader = ArchiveReader(file, name)
        for _ in reader.families():
            pass
        return reader.contents()
