"""The files that SQLite has open: whether the folder still has them, and their locks.

POSIX drops all locks of a process on a file when the process closes any descriptor of
it: a program that reads its own database loses SQLite's locks. Another program that
closes the file then takes itself for the last, and removes the log that is in use here.
Locks of an open file description (OFD), taken on SQLite's own descriptors, stay.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
import sys
import time
from collections.abc import Callable, Iterable

if sys.platform != "win32":
    import fcntl

_DESCRIPTORS = "/dev/fd"
# The bytes that SQLite locks as long as it has a file open, in the database and in the
# shared memory beside it (https://sqlite.org/src/file/src/os_unix.c).
_SHARED = (0x4000_0002, 510)
_IN_USE = (128, 1)
_BOTH = 2
_IS_LINUX = sys.platform == "linux"
# Of statx(2): its flags, the size of its answer, and where the count of names is in it.
_AT_EMPTY_PATH, _STATX_NLINK, _STATX_SIZE, _NLINK = 0x1000, 4, 256, 16


def open_descriptors() -> frozenset[int]:
    """The descriptors of this process, none where that cannot be known."""
    try:
        listed = os.listdir(_DESCRIPTORS)
    except OSError:
        return frozenset()
    # One of them was open only to make the list.
    return frozenset(file for file in map(int, listed) if _is_open(file))


def _is_open(file: int) -> bool:
    try:
        os.fstat(file)
    except OSError:
        return False
    return True


class OpenFiles:
    """The database, the log and the shared memory of a connection that has just read.

    ``before`` are the descriptors from before it was opened. If the locks hold, only a
    person removes the log; ``pause`` is how many seconds that may go unnoticed then.
    """

    def __init__(self, path: str, before: frozenset[int], pause: float) -> None:
        self.log = f"{path}-wal"
        self._log_is = os.stat(self.log)
        opened = sorted(open_descriptors() - before)
        log_file = descriptor_of(self._log_is, opened)
        self._log_names = link_count(log_file) if log_file >= 0 else None
        self._locked: list[tuple[int, tuple[int, int]]] = []
        with contextlib.suppress(OSError):
            self._lock(descriptor_of(os.stat(path), opened), _SHARED)
            self._lock(descriptor_of(os.stat(f"{path}-shm"), opened), _IN_USE)
        self._pause = pause if len(self._locked) == _BOTH else 0.0
        self._next_look = 0.0

    def may_have_log(self) -> bool:
        """Like `has_log`, as it was at most the pause ago."""
        if self._pause:
            now = time.monotonic()
            if now < self._next_look:
                return True
            self._next_look = now + self._pause
        return self.has_log()

    def has_log(self) -> bool:
        """True if the log in the folder is the one that is open."""
        if self._log_names is not None:
            return self._log_names() > 0
        try:
            return os.path.samestat(os.stat(self.log), self._log_is)
        except FileNotFoundError:
            return False

    def unlock(self) -> None:
        """Give the locks back, so that SQLite can close the files."""
        for file, place in self._locked:
            with contextlib.suppress(OSError):
                _set_lock(file, place, unlock=True)
        self._locked.clear()

    def _lock(self, file: int, place: tuple[int, int]) -> None:
        if file >= 0 and _set_lock(file, place):
            self._locked.append((file, place))


def link_count(file: int) -> Callable[[], int] | None:
    """Asks how many names an open file has, where the system can tell only that.

    ``os.fstat`` asks for its times as well: Linux then has to note the exact time of
    the next write.
    """
    statx = getattr(ctypes.CDLL(None), "statx", None) if _IS_LINUX else None
    if statx is None:
        return None
    found = ctypes.create_string_buffer(_STATX_SIZE)
    names = ctypes.c_uint32.from_buffer(found, _NLINK)
    arguments = (
        ctypes.c_int(file), ctypes.c_char_p(b""), ctypes.c_int(_AT_EMPTY_PATH),
        ctypes.c_uint(_STATX_NLINK), found,
    )  # fmt: skip

    def count() -> int:
        statx(*arguments)
        return names.value

    return count if count() > 0 else None


def descriptor_of(wanted: os.stat_result, among: Iterable[int]) -> int:
    """SQLite's descriptor of a file, -1 if there is none."""
    for file in among:
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(file), wanted):
                return file
    return -1


def _set_lock(file: int, place: tuple[int, int], *, unlock: bool = False) -> bool:
    if not _IS_LINUX or not hasattr(fcntl, "F_OFD_SETLK"):
        return False
    kind = fcntl.F_UNLCK if unlock else fcntl.F_RDLCK
    start, length = place
    # struct flock: type, whence, start, length, and a process that has to be 0.
    request = struct.pack("hhqqi4x", kind, os.SEEK_SET, start, length, 0)
    fcntl.fcntl(file, fcntl.F_OFD_SETLK, request)
    return True
