"""A queue in front of SQLite's write lock, so that no process is starved.

SQLite waits for its lock by polling: of 16 busy processes one made 4,281 commits and
another made 1. The kernel wakes processes that wait for a ``flock`` in their order. The
queue decides only which process may try next; correctness stays with SQLite's own lock.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import sys
import threading
import time

from holdfast._values.os_errors import NO_ROOM
from holdfast.backends.sqlite._acknowledged import (
    FLAGS,
    SIZE,
    forget_acknowledged,
    mapped,
)
from holdfast.errors import Busy, HoldfastError

if sys.platform != "win32":
    import fcntl

# Where a lock file says until when its holder expects to write, as microseconds: behind
# the records of what was acknowledged.
NOTICE, DIGITS = SIZE, 20
LONGEST_NOTICE = 600.0


class WriterQueue:
    """A lock file beside the database, held for one transaction at a time."""

    def __init__(self, path: str, timeout: float) -> None:
        self._file = LockFile(path, timeout)
        self.records: mmap.mmap | None = None
        self._next_look = 0.0

    @property
    def descriptor(self) -> int:
        """The descriptor of the file, -1 if there is none."""
        return self._file.descriptor

    def __enter__(self) -> None:
        file = self._file
        while True:
            try:
                if file.descriptor < 0:
                    self._open()
                granted = file.try_lock()
            except OSError as error:
                self.abandon()
                if error.errno in NO_ROOM:  # another time there is one
                    raise
                # Where no lock file can be made, SQLite's own polling has to do.
                return
            except BaseException:
                # If it was interrupted, it may have the lock already.
                file.unlock()
                raise
            if not granted:
                file.wait()
            if time.monotonic() < self._next_look or self._is_there():
                return
            # A process that closed the store has removed the file, or a person.
            self.abandon()

    def _open(self) -> None:
        self._file.open()
        self.records = mapped(self._file.descriptor)
        self._next_look = 0.0

    def _is_there(self) -> bool:
        """True if the file has its name; it is looked at again after a second.

        A process removes it only if no other one has the store open. A file system may
        have to write the time of each change after a program has asked for it.
        """
        self._next_look = time.monotonic() + 1.0
        return os.fstat(self._file.descriptor).st_nlink > 0

    def __exit__(self, *_: object) -> None:
        self._file.unlock()

    def close(self, *, remove: bool) -> None:
        """Close the file, and remove it unless another process has the lock.

        A process that waits for it makes a new one.
        """
        if self._file.descriptor >= 0:
            with contextlib.suppress(OSError):
                if remove and self._file.try_lock():
                    # Where an open file cannot be removed, it is about no store.
                    forget_acknowledged(self._file.descriptor)
                    os.unlink(self._file.path)
            self.abandon()

    def announce(self, seconds: float) -> None:
        """Ask other processes to wait for so long; only with the lock held."""
        self._file.announce(seconds)

    def abandon(self) -> None:
        """Close the file only: a forked child would share the lock of its parent."""
        records, self.records = self.records, None
        if records is not None:
            records.close()
        self._file.close()


class LockFile:
    """A file that one process at a time has locked, by ``flock``."""

    def __init__(self, path: str, timeout: float) -> None:
        self.path = path
        self.timeout = timeout
        self.descriptor = -1

    def open(self) -> None:
        """Open the file, again if need be; it is created if there is none."""
        self.close()
        flags = os.O_RDWR | os.O_CREAT | FLAGS
        try:
            self.descriptor = os.open(self.path, flags, 0o600)
        except OSError as error:
            if error.errno == errno.ELOOP:
                text = (
                    f"{self.path} is a symbolic link, which is not followed; remove it"
                )
                raise HoldfastError(text, code="cannot_open") from error
            raise

    def __del__(self) -> None:
        """A store that was dropped without `close` keeps no descriptor."""
        self.close()

    def close(self) -> None:
        """Close the file and leave it there."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def try_lock(self) -> bool:
        """Take the lock if no process holds it."""
        # Windows has no flock: there SQLite's own polling for its lock has to do.
        if sys.platform != "win32":
            try:
                fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
        return True

    def wait(self) -> None:
        """Take the lock when it is this process's turn; `Busy` after the timeout."""
        # flock has no timeout: a thread waits for it, and this one for the thread.
        if not _Waiter(self.descriptor).granted_within(self.timeout):
            raise Busy(
                "another process held the write lock past the timeout;"
                " retry, or raise busy_timeout"
            )

    def announce(self, seconds: float) -> None:
        """Tell the processes that wait how long the holder expects to write."""
        # By the clock of the wall: a notice must not outlive a restart of the machine.
        until = int((time.time() + seconds) * 1_000_000)
        if self.descriptor >= 0 and sys.platform != "win32":
            with contextlib.suppress(OSError):  # they wait less long then
                os.pwrite(self.descriptor, b"%0*d" % (DIGITS, until), NOTICE)

    def unlock(self) -> None:
        """Give the lock back; this is allowed without having it."""
        if self.descriptor >= 0 and sys.platform != "win32":
            fcntl.flock(self.descriptor, fcntl.LOCK_UN)


def announced(file: int) -> float:
    """The seconds that the holder of a lock file still expects to write."""
    notice = b"" if sys.platform == "win32" else os.pread(file, DIGITS, NOTICE)
    left = int(notice) / 1_000_000 - time.time() if notice.isdigit() else 0.0
    return min(left, LONGEST_NOTICE)


def _lock(file: int) -> None:
    if sys.platform != "win32":
        fcntl.flock(file, fcntl.LOCK_EX)


def _unlock(file: int) -> None:
    if sys.platform != "win32":
        fcntl.flock(file, fcntl.LOCK_UN)


class _Waiter(threading.Thread):
    """Waits for a lock without a timeout, and gives it back if it came too late."""

    def __init__(self, file: int) -> None:
        super().__init__(daemon=True, name="holdfast-lock-waiter")
        self._owner = file
        self._file = os.dup(file)
        self._granted = threading.Event()
        self._decision = threading.Lock()
        self._abandoned = False

    def run(self) -> None:
        try:
            _lock(self._file)
            with self._decision:
                if self._abandoned:
                    _unlock(self._file)
                else:
                    self._granted.set()
        finally:
            os.close(self._file)

    def granted_within(self, timeout: float) -> bool:
        """True if the lock was granted; if it was not in time, it never will be."""
        granted = False
        try:
            self.start()
            granted = self._granted.wait(timeout)
            while not granted and (longer := announced(self._owner)) > 0:
                granted = self._granted.wait(longer)
        finally:
            # Also when interrupted, even while the thread starts. Else it would get
            # the lock later and never give it back.
            with self._decision:
                self._abandoned = not granted
                if self._granted.is_set() and not granted:
                    _unlock(self._owner)
        return granted
