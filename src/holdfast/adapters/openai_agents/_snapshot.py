"""Snapshots of a sandbox's files as the files of a thread.

The SDK gives and takes a tar archive. Its files are saved one by one, so that a turn
costs what it changed, and `holdfast diff`, `show` and `restore` know them.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
import os
import stat
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from agents.sandbox.errors import SnapshotPersistError, SnapshotRestoreError
from agents.sandbox.session.dependencies import Dependencies
from agents.sandbox.snapshot import SnapshotBase, SnapshotSpec

import holdfast
from holdfast.workspace import FileEntry, Omitted, Tree

PREFIX = "sandbox:"
_PIECE = 1 << 20
_IN_MEMORY = 1 << 24
# Errors of reading a damaged or forged tar archive; a hard link can name a missing
# file, or itself.
_UNREADABLE = (OSError, tarfile.TarError, ValueError, KeyError, RecursionError)
# The own folder of a workspace in the sandbox; no checkpoint has files in it.
_OWN_FOLDER = b".holdfast"


class HoldfastSnapshot(SnapshotBase):
    """The files of a sandbox in the thread ``sandbox:<id>`` of a store.

    ``store`` is an address as `holdfast.open` takes it. Every `persist` makes a
    checkpoint; `restore` gives the files of the head, so a rewind of the thread applies
    to it. Owners and times of files are not kept.
    """

    type: str = "holdfast"
    store: str

    @property
    def thread(self) -> str:
        """The thread that has the files."""
        return PREFIX + self.id

    async def persist(
        self, data: io.IOBase, *, dependencies: Dependencies | None = None
    ) -> None:
        """Save the files of a tar archive as a new checkpoint."""
        del dependencies
        try:
            await asyncio.to_thread(self._persist, data)
        except (*_UNREADABLE, holdfast.HoldfastError) as error:
            raise SnapshotPersistError(
                snapshot_id=self.id, path=Path(self.store), cause=error
            ) from error

    def _persist(self, data: io.IOBase) -> None:
        with TarSnapshot(data) as snapshot, holdfast.open(self.store) as store:
            store.thread(self.thread).extend({}, files=snapshot)

    async def restore(self, *, dependencies: Dependencies | None = None) -> io.IOBase:
        """The files of the head as a tar archive."""
        del dependencies
        try:
            return await asyncio.to_thread(self._restore)
        except (holdfast.HoldfastError, OSError) as error:
            raise SnapshotRestoreError(
                snapshot_id=self.id, path=Path(self.store), cause=error
            ) from error

    def _restore(self) -> io.IOBase:
        with holdfast.open(self.store) as store:
            thread = store.thread(self.thread)
            head = thread.get()
            return _archive(thread, head, thread.files(head))

    async def restorable(self, *, dependencies: Dependencies | None = None) -> bool:
        """True if files were saved."""
        del dependencies
        return await asyncio.to_thread(self._restorable)

    def _restorable(self) -> bool:
        try:
            with holdfast.open(self.store) as store:
                store.thread(self.thread).files()
        except holdfast.NotFound:
            return False
        return True


class HoldfastSnapshotSpec(SnapshotSpec):
    """Makes a `HoldfastSnapshot` for each session of a sandbox."""

    type: str = "holdfast"
    store: str

    def build(self, snapshot_id: str) -> SnapshotBase:
        """The snapshot of a session."""
        return HoldfastSnapshot(id=snapshot_id, store=self.store)


# --- archives -------------------------------------------------------------------------


class TarSnapshot:
    """The files in a tar archive, for a save."""

    def __init__(self, data: io.IOBase) -> None:
        with contextlib.ExitStack() as opened:
            spool = opened.enter_context(
                tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)
            )
            while piece := data.read(_PIECE):
                spool.write(piece)
            spool.seek(0)
            self._archive = opened.enter_context(tarfile.open(fileobj=spool))
            self.tree = self._tree()
            self._opened = opened.pop_all()

    def _tree(self) -> Tree:
        members = {_path(each.name): each for each in self._archive}
        members.pop(b"", None)
        self._members = members
        folders = {path.rpartition(b"/")[0] for path in members}
        entries: dict[bytes, FileEntry] = {}
        omitted: list[Omitted] = []
        for path, member in members.items():
            if member.isdir() and path in folders:
                continue
            if _OWN_FOLDER in path.lower().split(b"/"):
                omitted.append(Omitted(path, "kept by a workspace for itself"))
                continue
            entry = self._entry(path, member)
            if entry is None:
                omitted.append(Omitted(path, "device"))
            else:
                entries[path] = entry
        return Tree(entries, (), tuple(omitted))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def _entry(self, path: bytes, member: tarfile.TarInfo) -> FileEntry | None:
        if not (member.isdir() or member.issym() or member.isfile() or member.islnk()):
            return None
        digest, size = hashlib.sha256(), 0
        for piece in self._pieces(member):
            digest.update(piece)
            size += len(piece)
        return FileEntry(path, _mode(member), size, digest.digest())

    def content(self, path: bytes) -> Iterator[bytes]:
        """The bytes of a file in pieces; of a symbolic link, its target."""
        return self._pieces(self._members[path])

    def _pieces(self, member: tarfile.TarInfo) -> Iterator[bytes]:
        if member.issym():
            yield os.fsencode(member.linkname)
        elif not member.isdir():
            file = self._archive.extractfile(member)
            while file is not None and (piece := file.read(_PIECE)):
                yield piece


def _path(name: str) -> bytes:
    parts = [part for part in name.split("/") if part not in {"", "."}]
    return os.fsencode("/".join(parts))


def _mode(member: tarfile.TarInfo) -> int:
    if member.issym():
        return stat.S_IFLNK | 0o777
    kind = stat.S_IFDIR if member.isdir() else stat.S_IFREG
    return kind | (member.mode & 0o777)


def _archive(
    thread: holdfast.Thread, head: holdfast.Checkpoint, tree: Tree
) -> io.IOBase:
    """A tar archive of the files of a checkpoint, folders before what is in them."""
    made = io.BytesIO()
    folders: set[str] = set()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for path, entry in sorted(tree.entries.items()):
            name = os.fsdecode(path)
            for folder in _missing(name, folders):
                archive.addfile(_member(folder, stat.S_IFDIR | 0o755))
            member = _member(name, entry.mode)
            content = b"" if entry.is_directory else thread.read_file(path, head)
            if entry.is_link:
                member.linkname = os.fsdecode(content)
                archive.addfile(member)
            else:
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
            if entry.is_directory:
                folders.add(name)
    made.seek(0)
    return made


def _missing(name: str, known: set[str]) -> list[str]:
    parts = name.split("/")[:-1]
    found = ["/".join(parts[: n + 1]) for n in range(len(parts))]
    missing = [folder for folder in found if folder not in known]
    known.update(missing)
    return missing


def _member(name: str, mode: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.mode = mode & 0o777
    if stat.S_ISDIR(mode):
        member.type = tarfile.DIRTYPE
    elif stat.S_ISLNK(mode):
        member.type = tarfile.SYMTYPE
    return member
