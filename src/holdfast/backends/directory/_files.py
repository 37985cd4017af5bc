"""Everything this backend does to files, in one place where faults can be let in.

A file is changed in three ways only: bytes are put behind its end, it is cut, or it is
replaced as a whole by renaming. Errors are those of the operating system.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Generator, Iterator
from typing import NamedTuple

if sys.platform == "win32":
    _FLAGS = os.O_BINARY
else:
    import fcntl

    _FLAGS = os.O_CLOEXEC


class Seen(NamedTuple):
    """What tells one version of a file from another without reading it."""

    size: int
    modified: int
    inode: int


class Files:
    """The primitives, each of them one step that a disk makes or fails to make."""

    def read(self, path: str, start: int = 0, size: int = -1) -> bytes:
        """Some of a file's bytes."""
        with open(path, "rb") as file:
            file.seek(start)
            return file.read(size)

    def pieces(self, path: str, start: int = 0) -> Iterator[bytes]:
        """The lines of a file, each with its end."""
        with open(path, "rb") as file:
            file.seek(start)
            yield from file

    def write(self, path: str, offset: int, data: bytes) -> None:
        """Bytes at a place of a file, which is made if it is not there."""
        with self._opened(path, os.O_WRONLY | os.O_CREAT) as file:
            os.lseek(file, offset, os.SEEK_SET)
            view = memoryview(data)
            while view:
                view = view[os.write(file, view) :]

    def sync(self, path: str) -> None:
        """Make what was written to a file survive a power cut."""
        with self._opened(path, os.O_RDWR) as file:
            _sync(file)

    def sync_folder(self, path: str) -> None:
        """Make the names in a folder survive a power cut."""
        if sys.platform != "win32":
            with self._opened(path, os.O_RDONLY) as folder:
                _sync(folder)

    def truncate(self, path: str, size: int) -> None:
        """Cut a file."""
        os.truncate(path, size)

    def rename(self, path: str, target: str) -> None:
        """Give a file another name, instead of whatever has that name."""
        os.replace(path, target)

    def remove(self, path: str) -> None:
        """Remove a file; it is fine if there is none."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    @contextlib.contextmanager
    def _opened(self, path: str, flags: int) -> Generator[int]:
        file = os.open(path, flags | _FLAGS, 0o600)
        try:
            yield file
        finally:
            os.close(file)


def seen(path: str) -> Seen | None:
    """How a file looks from outside, ``None`` if there is none."""
    try:
        return looks(os.stat(path))
    except (FileNotFoundError, NotADirectoryError):
        return None


def looks(found: os.stat_result) -> Seen:
    """What of the state of a file is compared."""
    return Seen(found.st_size, found.st_mtime_ns, found.st_ino)


def _sync(file: int) -> None:
    if sys.platform == "darwin":
        fcntl.fcntl(file, fcntl.F_FULLFSYNC)
    else:
        os.fsync(file)
