"""The size of the log: it begins again, or a warning names the reader in the way.

SQLite begins a log from the start at a moment without readers. A read transaction that
stays open, as of a program that was stopped, leaves no such moment: the log grows with
every save.
"""

from __future__ import annotations

import contextlib
import os
import struct
import time
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import apsw

from holdfast.backends.sqlite._connection import file_size
from holdfast.backends.sqlite._open_files import descriptor_of, open_descriptors

# The size at which a log begins again, and for how many milliseconds its readers are
# waited for: no one can save meanwhile.
LARGEST_LOG, READERS_TIMEOUT = 32 << 20, 100
# If they did not end, it is tried again after so many seconds, or when it is so much
# larger: a store beside a reader that stays may not wait in vain at every turn.
RETRY, GROWTH = 2.0, 1.25
# The size of the first warning. The next ones come at twice the size each.
WARN_AT = 64 << 20
# After so many commits the size is looked at.
LOOK_AFTER = 16

# Bytes of the shared memory: one for each reader, one for all programs that have it
# open, and the place of the frame up to which each reader sees the log
# (https://sqlite.org/walformat.html).
_READERS, _OPEN = range(123, 128), 128
_MARKS = struct.Struct("=5I")
_MARKS_AT = 100
_LOCKS = "/proc/locks"


class LogSize:
    """Keeps the log of an open database small."""

    def __init__(self) -> None:
        self._commits = 0
        self._tried_at, self._tried = 0.0, 0
        self._warn_at = WARN_AT
        self._notice = ""

    def look(self, db: apsw.Connection) -> None:
        """Begin a large log again if its readers end soon; called after each commit.

        Beside readers who relieve one another SQLite may find no moment for it; here
        new ones are served from the file.
        """
        self._commits += 1
        if self._commits % LOOK_AFTER:
            return
        log = db.filename_wal
        size = file_size(log)
        if size < LARGEST_LOG or not self._is_due(size):
            return
        patience = db.pragma("busy_timeout")
        db.set_busy_timeout(READERS_TIMEOUT)
        try:
            # No caller asked for it: if it fails, the save still stands.
            db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            self._tried, self._warn_at = 0, WARN_AT
        except apsw.BusyError:
            self._tried_at, self._tried = time.monotonic(), size
            self._note(log, size)
        except apsw.Error:
            pass
        finally:
            db.set_busy_timeout(patience)

    def _is_due(self, size: int) -> bool:
        """True if it is time to try again after an attempt that may have failed."""
        has_grown = size >= min(self._tried * GROWTH, self._warn_at)
        is_new = size < self._tried
        return has_grown or is_new or time.monotonic() >= self._tried_at + RETRY

    def _note(self, log: str, size: int) -> None:
        if size < self._warn_at:
            return
        while self._warn_at <= size:
            self._warn_at *= 2
        shared_memory = f"{log.removesuffix('-wal')}-shm"
        found = [_described(process) for process in oldest_readers(shared_memory)]
        who = " and ".join(found) or "a program"
        way = "" if found else f"; lsof {shared_memory} lists those that have it open"
        self._notice = (
            f"{log} has grown to {size >> 20} MB, because {who} has been reading the"
            " store in one transaction all the while: end that transaction or program"
            f"{way}. Nothing is lost meanwhile"
        )

    def tell(self) -> None:
        """Warn of what was found; called before a commit.

        A program that makes errors of warnings then has an error and no save, and not
        an error about a save that was made.
        """
        notice, self._notice = self._notice, ""
        if notice:
            warnings.warn(notice, RuntimeWarning, stacklevel=2)


class _Lock(NamedTuple):
    """A lock of a process on some bytes of a file."""

    process: int
    file: str
    first: int
    last: int

    def covers(self, byte: int) -> bool:
        return self.first <= byte <= self.last


def oldest_readers(shared_memory: str) -> list[int]:
    """The processes that see the least of a log, as far as the system tells.

    The kernel lists the locks by which SQLite knows its readers. The file is read where
    it is open: closing it once more would drop the locks of this process.
    """
    readers: dict[int, set[int]] = {}
    try:
        found = os.stat(shared_memory)
        file = descriptor_of(found, open_descriptors())
        marks = _MARKS.unpack(os.pread(file, _MARKS.size, _MARKS_AT))
        locks = [k for k in _locks() if k.file.endswith(f":{found.st_ino}")]
    except (OSError, ValueError, struct.error):
        return []
    # Of files with that number on several devices it is the one that is open here.
    own = {k.file for k in locks if k.process == os.getpid() and k.covers(_OPEN)}
    for lock in locks:
        for byte, mark in zip(_READERS, marks, strict=True):
            if lock.file in own and lock.covers(byte):
                readers.setdefault(mark, set()).add(lock.process)
    return sorted(readers[min(readers)]) if readers else []


def _locks() -> Iterator[_Lock]:
    with open(_LOCKS, encoding="ascii") as file:
        for line in file:
            # 7: POSIX  ADVISORY  READ 4242 fe:00:2171491 124 124
            kind, *_, process, name, first, last = line.split()[1:]
            if kind == "POSIX" and last != "EOF":
                yield _Lock(int(process), name, int(first), int(last))


def _described(process: int) -> str:
    if process == os.getpid():
        return "this process itself"
    name = ""
    with (
        contextlib.suppress(OSError),
        open(f"/proc/{process}/comm", encoding="utf-8", errors="replace") as file,
    ):
        name = f" ({file.read().strip()})"
    return f"process {process}{name}"
