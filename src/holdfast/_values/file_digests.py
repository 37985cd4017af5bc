"""Checking the files of checkpoints against the digests in their lists."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Protocol

from holdfast._values.file_listing import (
    MAGIC,
    Below,
    Level,
    Part,
    decode_level,
    fold,
    refuse_inside_levels,
)
from holdfast._values.manifest import FileLog
from holdfast._values.records import Run
from holdfast._values.stored_file import StoredFile
from holdfast.errors import Corrupt


class Hashes(Protocol):
    """The hashes of segments by number."""

    def __getitem__(self, number: int, /) -> bytes: ...

    def __contains__(self, number: int, /) -> bool: ...


class FileDigests:
    """Checks what each checkpoint has added to the files of its parent."""

    def __init__(self, hashes: Hashes) -> None:
        self._hashes = hashes
        self._levels: dict[int, bytes] = {}
        self._read: dict[
            int, Level
        ] = {}  # the levels of the list that was checked last

    def add(self, number: int, data: bytes) -> None:
        """Remember a segment if it may be a part of a list."""
        if data.startswith(MAGIC):
            self._levels[number] = data

    def check(self, log: FileLog, old: FileLog | None) -> Iterator[str]:
        """The problems with files that this checkpoint added to its parent's."""
        if log == old:
            return
        lost = next(self._lost(log.runs, old.runs if old else ()), None)
        try:
            for stored in self._added(log, old):
                yield from self._check_file(stored)
        except Corrupt as error:
            yield f"its files: {error}"
            return
        if lost is not None:
            yield f"its files: segment {lost} is lost or damaged"

    def _lost(self, runs: Sequence[Run], old: Sequence[Run]) -> Iterator[int]:
        for run in runs:
            if not any(o.first <= run.first and run.last <= o.last for o in old):
                numbers = range(run.first, run.last + 1)
                yield from (n for n in numbers if n not in self._hashes)

    def _added(self, log: FileLog, old: FileLog | None) -> Sequence[StoredFile]:
        """The files that the parent does not have, or all if that is not known."""
        at = Below(log.top, 0, log.digest)
        top = self._level(at)
        parts = [*(Part(each, self._level(each)) for each in top.below), Part(at, top)]
        is_near = False
        if old is not None and old.top in self._levels:
            before = self._level(Below(old.top, 0, old.digest))
            known = {old.top, *(each.number for each in before.below)}
            is_near = bool(top.below) and known.issuperset(b.number for b in top.below)
        # Lists that follow one another share most levels.
        self._read = {each.at.number: each.level for each in parts}
        if is_near:
            refuse_inside_levels(parts)
            return top.files
        return list(fold(parts).files.values())

    def _level(self, at: Below) -> Level:
        if at.number not in self._hashes:
            raise Corrupt("the list of the files", f"segment {at.number} is lost")
        if self._hashes[at.number] != at.digest or at.number not in self._levels:
            raise Corrupt("the list of the files", "it is not what was saved")
        return self._read.get(at.number) or decode_level(self._levels[at.number])

    def _check_file(self, stored: StoredFile) -> Iterator[str]:
        name = os.fsdecode(stored.path)
        numbers = stored.numbers
        lost = [number for number in numbers if number not in self._hashes]
        if lost:
            yield f"the file {name!r}: segment {lost[0]} is lost or damaged"
        elif not stored.has([self._hashes[number] for number in numbers]):
            yield f"the file {name!r}: its content is not what was saved"
