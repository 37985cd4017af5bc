"""Files that this process has open: they are read without opening them again.

To close any descriptor of a file drops all locks that the process has on it by fcntl.
SQLite locks its databases so: another process could then write while a transaction of
this one is open, and destroy the database. A file that is open here is therefore read
through the descriptor that is there.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Generator

from holdfast._values.os_errors import NO_ROOM
from holdfast._values.store_files import SMALLEST_PAGE
from holdfast.workspace import _descriptors

if sys.platform != "win32":
    import fcntl

_DESCRIPTORS = "/dev/fd"
# A descriptor of a path alone reads nothing.
_PATH_ONLY = getattr(os, "O_PATH", 0)


class OpenFiles:
    """The regular files that this process has open, looked up when that is needed.

    They are looked up again for each file that has the size of a database: one may
    have been opened since.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[int, int], list[int]] | None = None

    def find(self, about: os.stat_result) -> int | None:
        """A descriptor by which a file can be read, ``None`` if there is none."""
        is_paged = about.st_size > 0 and about.st_size % SMALLEST_PAGE == 0
        if self._found is None or is_paged:
            self._found = _own_descriptors()
        for each in self._found.get((about.st_dev, about.st_ino), ()):
            if _is_readable(each) and is_same(each, about):
                return each
        return None


@contextlib.contextmanager
def readable(name: str | bytes, at: int) -> Generator[int]:
    """The descriptor of a file in the folder ``at``, for reads that name the place."""
    mine = OpenFiles().find(os.stat(name, dir_fd=at, follow_symlinks=False))
    if mine is not None:
        yield mine
        return
    with _descriptors.opened(name, _descriptors.READ, at) as file:
        yield file


def is_same(descriptor: int, about: os.stat_result) -> bool:
    """True if a descriptor, which another thread may have closed, is of the file."""
    try:
        return os.path.samestat(os.fstat(descriptor), about)
    except OSError:
        return False


def _own_descriptors() -> dict[tuple[int, int], list[int]]:
    """The descriptors of regular files, none where that cannot be known."""
    found: dict[tuple[int, int], list[int]] = {}
    try:
        names = os.listdir(_DESCRIPTORS)
    except OSError as error:
        if error.errno in NO_ROOM:
            raise
        return found
    for descriptor in map(int, names):
        with contextlib.suppress(OSError):
            about = os.fstat(descriptor)
            if stat.S_ISREG(about.st_mode):
                found.setdefault((about.st_dev, about.st_ino), []).append(descriptor)
    return found


def _is_readable(descriptor: int) -> bool:
    try:
        flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    except OSError:
        return False
    return not flags & _PATH_ONLY and flags & os.O_ACCMODE != os.O_WRONLY
