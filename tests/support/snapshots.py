"""Snapshots of folders that exist in memory only."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from hashlib import sha256

from holdfast.errors import Conflict
from holdfast.workspace import FileEntry, Omitted, Tree

REGULAR = stat.S_IFREG | 0o644
LINK = stat.S_IFLNK | 0o777
FOLDER = stat.S_IFDIR | 0o755


class MemorySnapshot:
    """Files by path, each with its content; ``modes`` for those that are not 0644."""

    def __init__(
        self,
        files: Mapping[str, bytes],
        modes: Mapping[str, int] | None = None,
        rules: tuple[str, ...] = (),
        omitted: Mapping[str, str] | None = None,
    ) -> None:
        self._contents = {os.fsencode(path): data for path, data in files.items()}
        given = {os.fsencode(path): mode for path, mode in (modes or {}).items()}
        self.tree = Tree(
            {
                path: FileEntry(
                    path, given.get(path, REGULAR), len(data), sha256(data).digest()
                )
                for path, data in self._contents.items()
            },
            rules,
            tuple(Omitted(os.fsencode(p), r) for p, r in (omitted or {}).items()),
        )
        # What was asked for, in order.
        self.read: list[str] = []

    def content(self, path: bytes) -> Iterator[bytes]:
        self.read.append(os.fsdecode(path))
        data = self._contents[path]
        yield data[:1000]
        yield data[1000:]


class ChangingFolder:
    """A folder in which a file changes between the walk and the reading, some times."""

    def __init__(self, files: Mapping[str, bytes], changes: int) -> None:
        self.files, self.changes = dict(files), changes

    def scan(self) -> MemorySnapshot:
        folder, seen = self, MemorySnapshot(self.files)

        class Racing(MemorySnapshot):
            def content(self, path: bytes) -> Iterator[bytes]:
                if folder.changes:
                    folder.changes -= 1
                    name = os.fsdecode(path)
                    folder.files[name] += b"!"
                    raise Conflict(f"{name!r} changed", code="file_changed")
                return seen.content(path)

        return Racing(self.files)
