"""Reading one file of a folder for a snapshot."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from typing import NamedTuple

from holdfast._values.files import KEPT_MODE, FileEntry
from holdfast.workspace import _descriptors
from holdfast.workspace._index import Stamp
from holdfast.workspace._open_files import OpenFiles, is_same
from holdfast.workspace._snapshot import IN_MEMORY, Contents, Writer

# How often a file that changes meanwhile is read before it is left out.
MOST_TRIES = 4
NOTHING = hashlib.sha256(b"").digest()


class Unstable(Exception):
    """A file that was changed every time while it was read."""


class Replaced(Exception):
    """Something that is not a regular file has taken the place of one."""


class ReadFile(NamedTuple):
    """A file as it was read."""

    stamp: Stamp
    entry: FileEntry


def stamp_of(found: os.stat_result) -> Stamp:
    """The stamp of a file: with another one the file may have changed."""
    return (
        found.st_mtime_ns,
        found.st_ctime_ns,
        found.st_size,
        found.st_ino,
        found.st_mode,
    )


def read_file(
    at: int, name: str, path: bytes, contents: Contents, open_files: OpenFiles
) -> ReadFile:
    """A regular file, with a stamp that fits to what was read."""
    about = os.stat(name, dir_fd=at, follow_symlinks=False)
    mine = open_files.find(about)
    if mine is not None:
        # Another thread may close it, and its number may then mean another file.
        with contextlib.suppress(OSError, Replaced):
            found = _stable(mine, path, contents)
            if is_same(mine, about):
                return found
    with _descriptors.opened(name, _descriptors.READ, at) as file:
        return _stable(file, path, contents)


def _stable(file: int, path: bytes, contents: Contents) -> ReadFile:
    for _ in range(MOST_TRIES):
        before = os.fstat(file)
        if not stat.S_ISREG(before.st_mode):
            raise Replaced
        digest, size = _digest(file, before.st_size, contents)
        if size == before.st_size and stamp_of(os.fstat(file)) == stamp_of(before):
            entry = FileEntry(path, before.st_mode & KEPT_MODE, size, digest)
            return ReadFile(stamp_of(before), entry)
    raise Unstable


def _digest(file: int, size: int, contents: Contents) -> tuple[bytes, int]:
    if size > IN_MEMORY:
        return _digest_large(file, size, contents.spool())
    # One byte more: a file that has grown is noticed.
    data = os.pread(file, size + 1, 0)
    digest = hashlib.sha256(data).digest()
    contents.hold(digest, data)
    return digest, len(data)


def _digest_large(file: int, expected: int, spool: Writer) -> tuple[bytes, int]:
    digest, size = hashlib.sha256(), 0
    for piece in _descriptors.pieces(file):
        digest.update(piece)
        size += len(piece)
        if size > expected:  # it grows; it may never end
            return b"", size
        spool.write(piece)
    spool.finish(digest.digest())
    return digest.digest(), size


def read_link(at: int, name: str, path: bytes, contents: Contents) -> ReadFile:
    """A symbolic link; its content is its target."""
    found = os.stat(name, dir_fd=at, follow_symlinks=False)
    target = os.fsencode(os.readlink(name, dir_fd=at))
    digest = hashlib.sha256(target).digest()
    contents.hold(digest, target)
    entry = FileEntry(path, stat.S_IFLNK | 0o777, len(target), digest)
    return ReadFile(stamp_of(found), entry)
