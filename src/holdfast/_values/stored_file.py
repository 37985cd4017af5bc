"""A file as a checkpoint stores it: what it is, and the segments that hold it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from holdfast._values.files import FileEntry
from holdfast._values.rope import chain_of


class StoredFile(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A file with the segments that hold its content.

    ``runs`` are pairs of numbers, the first and the count. ``chain`` is the running
    digest over several segments; a single one has the digest of the file.
    """

    path: bytes
    mode: int
    size: int
    digest: bytes
    runs: tuple[int, ...] = ()
    chain: bytes = b""

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
        """Whether segments with these hashes are its content."""
        if len(hashes) == 1:
            return hashes[0] == self.digest
        return chain_of(hashes) == self.chain if hashes else not self.size


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
