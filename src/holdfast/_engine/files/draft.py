"""A snapshot as part of a save: what of it the parent has, and what is stored."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from hashlib import sha256
from typing import Any, Protocol, TypeAlias, runtime_checkable

import msgspec
from msgspec import structs

from holdfast._engine.cache import OpenedCheckpoint
from holdfast._engine.context import Context
from holdfast._engine.files.read import find_listing, read_chunks
from holdfast._values.file_chunks import LARGEST, cut
from holdfast._values.file_listing import About, Listing, extended
from holdfast._values.files import (
    HIGHEST_MODE,
    FileEntry,
    Snapshot,
    Tree,
    changed,
    compare,
    inside_of_file,
    missing,
    wrong_path,
)
from holdfast._values.manifest import FileLog
from holdfast._values.records import Segment
from holdfast._values.rope import Blocks, chain_of
from holdfast._values.runs import count_segments
from holdfast._values.segment_use import as_runs, covering
from holdfast._values.stored_file import LARGEST_FILE, StoredFile
from holdfast.errors import Conflict, Unstorable

# New contents of one save, which are in memory at once.
MOST_NEW = LARGEST_FILE
# In how many runs the segments of a checkpoint's files are, if that is possible.
FEW_RUNS = 4
# Beyond these, all files are stored again: so many runs, and so many unused segments
# beside those in use.
MOST_RUNS, MOST_UNUSED = 32, 256
# How often a snapshot is taken again because a file changed before it was read.
ATTEMPTS = 5


@runtime_checkable
class Scannable(Protocol):
    """A folder of which snapshots are taken, such as a `Workspace`."""

    def scan(self) -> Snapshot:
        """The files as they are now."""
        ...


# Runs a function that reads files: where it is called, or in a thread.
Reading: TypeAlias = Callable[[Callable[[], Any]], Awaitable[Any]]


async def read_here(read: Callable[[], Any]) -> Any:
    """Run a function that reads files where it is called."""
    return read()


class PlannedFiles(msgspec.Struct, frozen=True):
    """The files of a new checkpoint, their list, and the segments to be added.

    ``used`` is how many segments the files need, if any are to be added.
    """

    log: FileLog
    listing: Listing
    segments: Sequence[Segment] = ()
    used: int = 0


class Contents(Protocol):
    """The files to save, and their contents."""

    @property
    def tree(self) -> Tree:
        """The files."""
        ...

    async def chunks(self, entry: FileEntry) -> list[bytes]:
        """The content of a file in chunks; `Conflict` if it is not what was seen."""
        ...

    async def renew(self) -> bool:
        """See the files as they are now; false if that is not possible."""
        ...


class FolderContents:
    """A snapshot of a folder; with ``scan`` it is taken again if files change."""

    def __init__(
        self, snapshot: Snapshot, scan: Callable[[], Snapshot] | None = None
    ) -> None:
        self._snapshot, self._scan = snapshot, scan
        self.reading: Reading = read_here

    @property
    def tree(self) -> Tree:
        return self._snapshot.tree

    async def chunks(self, entry: FileEntry) -> list[bytes]:
        found: list[bytes] = await self.reading(lambda: self._chunks(entry))
        return found

    def _chunks(self, entry: FileEntry) -> list[bytes]:
        content = sha256()

        def pieces() -> Iterator[bytes]:
            for piece in self._snapshot.content(entry.path):
                content.update(piece)
                yield piece

        chunks = list(cut(pieces()))
        is_same_size = sum(map(len, chunks)) == entry.size
        if content.digest() != entry.digest or not is_same_size:
            raise Conflict(
                f"{entry.name!r} changed while it was saved; save again",
                code="file_changed",
            )
        return chunks

    async def renew(self) -> bool:
        if self._scan is not None:
            self._snapshot = await self.reading(self._scan)
        return self._scan is not None


class FilesDraft:
    """Files to be saved with a state."""

    def __init__(self, contents: Contents) -> None:
        self.contents = contents

    @classmethod
    def of(cls, source: object) -> FilesDraft:
        """A draft of what a caller passed as ``files``."""
        if isinstance(source, FilesDraft):
            return source
        if isinstance(source, Scannable):
            return cls(FolderContents(source.scan(), source.scan))
        if isinstance(source, Snapshot):
            return cls(FolderContents(source))
        kind = type(source).__name__
        raise Unstorable("files", f"must be a Workspace or a snapshot, not {kind}")

    async def plan(
        self, context: Context, parent: OpenedCheckpoint | None, blocks: Blocks
    ) -> PlannedFiles:
        """The levels and chunks to store after the parent."""
        for _ in range(ATTEMPTS):
            try:
                return await _plan(self.contents, context, parent, blocks)
            except Conflict:
                if not await self.contents.renew():
                    raise
        return await _plan(self.contents, context, parent, blocks)

    def matches(self, tree: Tree) -> bool:
        """True if the tree has the same files."""
        return not compare(tree, self.contents.tree)


async def _plan(
    contents: Contents,
    context: Context,
    parent: OpenedCheckpoint | None,
    blocks: Blocks,
) -> PlannedFiles:
    old = await find_listing(context, parent) if parent else None
    log = parent.manifest.files if parent else None
    planned = await _Store(contents, context, parent, blocks, old, log).planned()
    # A turn without changes adds nothing to what is held: it need not be counted.
    if log is not None and planned.segments and _is_wasteful(planned):
        fresh = FileLog((), 0, b"", 0, log.next_number)
        return await _Store(contents, context, parent, blocks, None, fresh).planned()
    return planned


def _is_wasteful(planned: PlannedFiles) -> bool:
    """True if it is better to store all files again."""
    if planned.log.size > MOST_NEW:
        return False
    held = count_segments(planned.log.runs)
    return held > 2 * planned.used + MOST_UNUSED or len(planned.log.runs) > MOST_RUNS


class _Store:
    """Finds the files that the parent does not have, and makes segments of them."""

    def __init__(
        self,
        contents: Contents,
        context: Context,
        parent: OpenedCheckpoint | None,
        blocks: Blocks,
        old: Listing | None,
        log: FileLog | None,
    ) -> None:
        self.contents, self.context, self.parent = contents, context, parent
        self.blocks, self.log = blocks, log
        self.old = old or Listing()
        self.next = log.next_number if log else 0
        self.segments: list[Segment] = []
        self.size = 0

    async def planned(self) -> PlannedFiles:
        tree = self.contents.tree
        old, other = self.old.files, changed(self.old.entries, tree.entries)
        new = [entry for entry in other if not _has(old.get(entry.path), entry)]
        _check(tree, new)
        gone = missing(old, tree.entries, (entry.path for entry in new))
        is_same = not new and not gone and About.of(tree) == self.old.about
        if is_same and self.log and self.log.runs:
            return PlannedFiles(self.log, self._unchanged(tree))
        # From here on each list knows the segments that it uses.
        self.old = structs.replace(self.old, use=self.old.known_use)
        changes: dict[bytes, StoredFile | None] = dict.fromkeys(gone)
        changes.update(await self._files(new))
        number = self._number()
        listing, top = extended(self.old, changes, tree, number)
        self.segments.append(top)
        return self._planned(listing, top)

    def _unchanged(self, tree: Tree) -> Listing:
        """The same list, with the objects that the next scan gives again."""
        return structs.replace(self.old, entries=dict(tree.entries))

    def _planned(self, listing: Listing, top: Segment) -> PlannedFiles:
        old = self.log.runs if self.log else ()
        added = as_runs(segment.number for segment in self.segments)
        used = listing.runs
        runs = covering(used, [*old, *added], FEW_RUNS)
        digest = sha256(top.data).digest()
        log = FileLog(tuple(runs), listing.size, digest, top.number, self.next)
        return PlannedFiles(log, listing, self.segments, count_segments(used))

    async def _files(self, new: Sequence[FileEntry]) -> dict[bytes, StoredFile]:
        """Files that the parent does not have, with the segments that hold them."""
        use, here = self.old.known_use, dict[bytes, StoredFile]()
        files: dict[bytes, StoredFile] = {}
        for entry in new:
            known = here.get(entry.digest) or use.find(entry.digest)
            stored = known.at(entry) if known else await self._stored(entry)
            here[entry.digest] = files[entry.path] = stored
        return files

    async def _stored(self, entry: FileEntry) -> StoredFile:
        """A file whose content no other one has."""
        if entry.is_directory or not entry.size:
            return StoredFile.of(entry, (), b"")
        self.size += entry.size
        if self.size > MOST_NEW:
            raise _too_large()
        chunks = await self.contents.chunks(entry)
        hashes = [sha256(chunk).digest() for chunk in chunks]
        known = await self._known(entry.path) if len(chunks) > 1 else {}
        numbers: list[int] = []
        for chunk, digest in zip(chunks, hashes, strict=True):
            if digest not in known:
                known[digest] = self._number()
                self.segments.append(Segment(known[digest], chunk))
            numbers.append(known[digest])
        return StoredFile.of(entry, numbers, chain_of(hashes))

    async def _known(self, path: bytes) -> dict[bytes, int]:
        """The chunks of the file before the change, by their hashes."""
        before = self.old.files.get(path)
        if before is None or before.size <= LARGEST or self.parent is None:
            return {}
        fetch = partial(self.context.backend.segments, self.parent.head.family)
        chunks = await read_chunks(fetch, [before])
        return {sha256(chunk).digest(): number for number, chunk in chunks.items()}

    def _number(self) -> int:
        number = self.blocks.number(self.next)
        self.next = number + 1
        return number


def _check(tree: Tree, new: Sequence[FileEntry]) -> None:
    """Refuse paths that no list may have, also in a tree of another program."""
    paths = [entry.path for entry in new]
    for entry in new:
        is_whole = entry.size >= 0 and len(entry.digest) == sha256().digest_size
        if not is_whole or not 0 <= entry.mode <= HIGHEST_MODE:
            raise Unstorable("files", f"have an entry that is none: {entry!r:.200}")
        if tree.entries.get(entry.path) is not entry:
            raise Unstorable("files", f"have {entry.name!r} at another path")
    wrong = wrong_path(paths)
    if wrong is not None:
        raise Unstorable("files", f"cannot be saved: {wrong}")
    place = inside_of_file(tree.entries, paths)
    if place is not None:
        name = os.fsdecode(place)
        raise Unstorable("files", f"have files in {name!r}, which is no folder")


def _has(stored: StoredFile | None, entry: FileEntry) -> bool:
    """True if the file is stored as it is in the tree."""
    # Field by field: to make an entry of each file takes twice as long.
    return (
        stored is not None
        and stored.digest == entry.digest
        and stored.mode == entry.mode
        and stored.size == entry.size
    )


def _too_large() -> Unstorable:
    return Unstorable(
        "files",
        f"have more than {MOST_NEW:,} new bytes; let the workspace ignore large files,"
        " or save them in several steps",
    )


# What a save takes as ``files``.
FileSource: TypeAlias = Scannable | Snapshot | FilesDraft
