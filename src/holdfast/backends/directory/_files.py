"""All changes of files by this backend, in one place where tests inject faults.

A file is changed in three ways only: bytes are written at its end, it is truncated, or
it is replaced as a whole by renaming. No symbolic link is followed: it could lead to a
file outside of the store. Errors are those of the operating system.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Generator, Iterator
from typing import NamedTuple

if sys.platform == "win32":
    _FLAGS, _NO_LINK = os.O_BINARY, 0
else:
    import fcntl

    # A named pipe would be waited for until another program writes to it.
    _FLAGS, _NO_LINK = os.O_CLOEXEC, os.O_NOFOLLOW | os.O_NONBLOCK


class FileStamp(NamedTuple):
    """Size, time and inode of a file: they tell one version of it from another."""

    size: int
    modified: int
    inode: int


class Files:
    """The file operations, each one step that a disk does or fails to do."""

    def read(self, path: str, start: int = 0, size: int = -1) -> bytes:
        """Some bytes of a file."""
        with open(path, "rb", opener=_open) as file:
            file.seek(start)
            return file.read(size)

    def pieces(self, path: str, start: int = 0) -> Iterator[bytes]:
        """The lines of a file, each with its line break."""
        with open(path, "rb", opener=_open) as file:
            file.seek(start)
            yield from file

    def write(self, path: str, offset: int, data: bytes) -> None:
        """Write bytes at an offset of a file, which is created if it is not there."""
        with _opened(path, os.O_WRONLY | os.O_CREAT | _NO_LINK) as file:
            os.lseek(file, offset, os.SEEK_SET)
            view = memoryview(data)
            while view:
                view = view[os.write(file, view) :]

    def sync(self, path: str) -> None:
        """Make what was written to a file survive a power cut."""
        with _opened(path, os.O_RDWR | _NO_LINK) as file:
            self.flush(file, path)

    def sync_folder(self, path: str) -> None:
        """Make the names in a folder survive a power cut."""
        if sys.platform != "win32":
            with _opened(path, os.O_RDONLY) as folder:
                self.flush(folder, path)

    def flush(self, descriptor: int, path: str) -> None:  # noqa: ARG002 - for tests
        """Ask the disk to keep an open file or folder; only ``sync…`` calls it."""
        _sync(descriptor)

    def truncate(self, path: str, size: int) -> None:
        """Cut a file to a size."""
        with _opened(path, os.O_WRONLY | _NO_LINK) as file:
            os.ftruncate(file, size)

    def rename(self, path: str, target: str) -> None:
        """Give a file another name; a file that has that name is replaced."""
        os.replace(path, target)

    def remove(self, path: str) -> None:
        """Remove a file; it is fine if there is none."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


@contextlib.contextmanager
def _opened(path: str, flags: int) -> Generator[int]:
    file = os.open(path, flags | _FLAGS, 0o600)
    try:
        yield file
    finally:
        os.close(file)


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | _NO_LINK)


def stamp(path: str) -> FileStamp | None:
    """The stamp of a file, ``None`` if there is none."""
    try:
        return stamp_of(os.lstat(path))
    except (FileNotFoundError, NotADirectoryError):
        return None


def stamp_of(found: os.stat_result) -> FileStamp:
    """The stamp of a file whose state the system gave."""
    return FileStamp(found.st_size, found.st_mtime_ns, found.st_ino)


def _sync(file: int) -> None:
    if sys.platform == "darwin":
        # There fsync leaves the bytes in the cache of the disk.
        try:
            fcntl.fcntl(file, fcntl.F_FULLFSYNC)
        except OSError:  # a file system that does not know it, as SQLite handles it
            os.fsync(file)
    else:
        os.fsync(file)
