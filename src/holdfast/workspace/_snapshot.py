"""The files of a folder at one moment, with the contents that a save may ask for."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Collection, Iterator

from holdfast._values.files import FileEntry, Tree
from holdfast._values.os_errors import is_nothing, reading, writing
from holdfast.errors import Conflict
from holdfast.workspace import _descriptors
from holdfast.workspace._open_files import readable

# Larger contents, and all after so many bytes, wait in a file without a name.
IN_MEMORY = 1 << 18
MOST_IN_MEMORY = 1 << 26


class Contents:
    """The contents that a scan has read; files that change later can still be saved."""

    def __init__(self, folder: str | None) -> None:
        self._folder = folder
        self._held: dict[bytes, bytes] = {}
        self._room = MOST_IN_MEMORY
        self._places: dict[bytes, tuple[int, int]] = {}
        self._spool: int | None = None

    def __del__(self) -> None:
        if self._spool is not None:
            os.close(self._spool)

    def hold(self, digest: bytes, data: bytes) -> None:
        """Keep a small content."""
        if digest not in self._held and len(data) <= self._room:
            self._held[digest] = data
            self._room -= len(data)

    def spool(self) -> Writer:
        """A place for a large content."""
        if self._spool is None:
            with writing(self._folder or tempfile.gettempdir()):
                self._spool, path = tempfile.mkstemp(dir=self._folder)
                os.unlink(path)
        return Writer(self._spool, self._places)

    def find(self, digest: bytes) -> Iterator[bytes] | None:
        """The content with a digest, if it was kept."""
        if digest in self._held:
            return iter((self._held[digest],))
        return self._spooled(digest) if digest in self._places else None

    def _spooled(self, digest: bytes) -> Iterator[bytes]:
        assert self._spool is not None
        offset, left = self._places[digest]
        while left:
            piece = os.pread(self._spool, min(left, _descriptors.PIECE), offset)
            yield piece
            offset, left = offset + len(piece), left - len(piece)


class Writer:
    """A content that is added to the spool; holes stay holes."""

    def __init__(self, spool: int, places: dict[bytes, tuple[int, int]]) -> None:
        self._spool = spool
        self._places = places
        self._start = self._end = os.fstat(spool).st_size

    def write(self, piece: bytes) -> None:
        """Add to the content."""
        if piece[:1] != b"\0" or piece.strip(b"\0"):
            with writing("the copy of a large file"):
                os.pwrite(self._spool, piece, self._end)
        self._end += len(piece)

    def finish(self, digest: bytes) -> None:
        """The content is complete."""
        with writing("the copy of a large file"):
            os.ftruncate(self._spool, self._end)
        self._places[digest] = (self._start, self._end - self._start)


class FolderSnapshot:
    """A `Snapshot` of a real folder."""

    def __init__(self, top: str, tree: Tree, contents: Contents) -> None:
        self.tree = tree
        self._top = top
        self._contents = contents

    def without(self, paths: Collection[bytes]) -> FolderSnapshot:
        """The snapshot without some paths."""
        if not paths:
            return self
        tree, entries = self.tree, dict(self.tree.entries)
        for path in paths:
            del entries[path]
        kept = Tree(entries, tree.rules, tree.omitted)
        return FolderSnapshot(self._top, kept, self._contents)

    def content(self, path: bytes) -> Iterator[bytes]:
        """The bytes of a file in pieces; `Conflict` if it has changed since."""
        entry = self.tree.entries[path]
        if entry.is_directory:
            return iter(())
        return self._contents.find(entry.digest) or self._read(entry)

    def _read(self, entry: FileEntry) -> Iterator[bytes]:
        digest = hashlib.sha256()
        try:
            for piece in _read(self._top, entry):
                digest.update(piece)
                yield piece
        except OSError as error:
            if is_nothing(error):
                raise _changed(entry) from error
            with reading(self._top):
                raise
        if digest.digest() != entry.digest:
            raise _changed(entry)


def _read(top: str, entry: FileEntry) -> Iterator[bytes]:
    start = os.open(top, _descriptors.FOLDER)
    try:
        with _descriptors.parent(start, entry.path) as (folder, name):
            if entry.is_link:
                yield os.readlink(name, dir_fd=folder)
            else:
                with readable(name, folder) as file:
                    yield from _descriptors.pieces(file)
    finally:
        os.close(start)


def _changed(entry: FileEntry) -> Conflict:
    path = os.fsdecode(entry.path)
    return Conflict(
        f"{path} was changed while it was saved; save again", code="file_changed"
    )
