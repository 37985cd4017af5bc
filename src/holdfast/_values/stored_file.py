"""A file as a checkpoint stores it: what it is, and the segments that hold it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from holdfast._values.file_chunks import SMALLEST
from holdfast._values.files import HIGHEST_MODE, FileEntry
from holdfast._values.rope import chain_of

# A save takes no more new bytes, so that no file is larger.
LARGEST_FILE = 1 << 30
# The most segments of all files of a list, counted for each file: many files can share
# them.
MOST_NUMBERS = 1 << 24


class StoredFile(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A file with the segments that hold its content.

    ``runs`` are pairs of numbers, the first and the count. ``chain`` is the running
    digest over several segments; a single one has the digest of the file.
    """

    path: bytes
    mode: Annotated[int, Meta(ge=0, le=HIGHEST_MODE)]
    size: Annotated[int, Meta(ge=0, le=LARGEST_FILE)]
    digest: Annotated[bytes, Meta(min_length=32, max_length=32)]
    runs: tuple[Annotated[int, Meta(ge=0, lt=1 << 32)], ...] = ()
    chain: Annotated[bytes, Meta(max_length=32)] = b""

    @classmethod
    def of(cls, entry: FileEntry, numbers: Sequence[int], chain: bytes) -> StoredFile:
        """A file whose content is in these segments."""
        pairs = tuple(part for run in runs_of(numbers) for part in run)
        fields = (entry.path, entry.mode, entry.size, entry.digest)
        return cls(*fields, pairs, chain if len(numbers) > 1 else b"")

    def at(self, entry: FileEntry) -> StoredFile:
        """Another file with the same content."""
        fields = (entry.path, entry.mode, entry.size, entry.digest)
        return StoredFile(*fields, self.runs, self.chain)

    @property
    def entry(self) -> FileEntry:
        """The file without its segments."""
        return FileEntry(self.path, self.mode, self.size, self.digest)

    @property
    def numbers(self) -> list[int]:
        """The numbers of its segments, in order."""
        pairs = zip(self.runs[::2], self.runs[1::2], strict=True)
        return [n for first, count in pairs for n in range(first, first + count)]

    def has(self, hashes: Sequence[bytes]) -> bool:
        """True if the segments with these hashes are its content."""
        if len(hashes) == 1:
            return hashes[0] == self.digest
        return chain_of(hashes) == self.chain if hashes else not self.size


def wrong_runs(files: Iterable[StoredFile]) -> str | None:
    """The problem of files with the segments that they name, ``None`` if there is none.

    A forged list can name a segment so often that no memory holds it.
    """
    total = 0
    for stored in files:
        runs = stored.runs
        if len(runs) == 2 and runs[1] == 1:  # noqa: PLR2004 - as most files
            continue
        count = sum(runs[1::2])
        total += count
        # All but the last chunk of a file have the smallest size or more.
        if len(runs) % 2 or count > stored.size // SMALLEST + 1:
            return f"the file {stored.entry.name!r} names too many segments"
    return "its files name too many segments" if total > MOST_NUMBERS else None


def runs_of(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Numbers in their order, as the first and the count of each run."""
    found: list[tuple[int, int]] = []
    first = following = -1
    for number in numbers:
        if number != following:
            if following >= 0:
                found.append((first, following - first))
            first = number
        following = number + 1
    if following >= 0:
        found.append((first, following - first))
    return found
