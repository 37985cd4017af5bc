"""A queue in front of SQLite's write lock, so that no process is starved.

SQLite waits for its lock by polling: of 16 busy processes one made 4,281 commits and
another made 1. The kernel wakes processes that wait for a ``flock`` in their order. The
queue decides only which process may try next; correctness stays with SQLite's own lock.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time

from holdfast.errors import Busy

if sys.platform != "win32":
    import fcntl

LOOK_SECONDS = 0.01
# Where a lock file says until when its holder expects to write, as microseconds.
NOTICE, DIGITS = 8, 20
LONGEST_NOTICE = 600.0


class WriterQueue:
    """A lock file beside the database, held for one transaction at a time."""

    def __init__(self, path: str, timeout: float) -> None:
        self._file = LockFile(path, timeout)
        self._looked_at = 0.0

    def __enter__(self) -> None:
        file = self._file
        try:
            if file.descriptor < 0 or self._is_removed():
                file.open()
            granted = file.try_lock()
        except OSError:
            # Where no lock file can be made, SQLite's own polling has to do.
            file.close()
            return
        except BaseException:
            # If it was interrupted, it may have the lock already.
            file.unlock()
            raise
        if not granted:
            file.wait()

    def __exit__(self, *_: object) -> None:
        self._file.unlock()

    def _is_removed(self) -> bool:
        """Whether another process has closed the store and removed the file.

        One that writes often asks now and then only: it takes as long as the lock, and
        for that moment two queues are merely less fair.
        """
        now = time.monotonic()
        if now - self._looked_at < LOOK_SECONDS:
            return False
        self._looked_at = now
        return os.fstat(self._file.descriptor).st_nlink == 0

    def close(self) -> None:
        """Remove the file; a process that still uses it makes a new one."""
        if self._file.descriptor >= 0:
            with contextlib.suppress(OSError):
                os.unlink(self._file.path)
            self._file.close()

    def announce(self, seconds: float) -> None:
        """Ask other processes to wait for so long; only with the lock held."""
        self._file.announce(seconds)

    def abandon(self) -> None:
        """Close the file only: a forked child would share the lock of its parent."""
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
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        self.descriptor = os.open(self.path, flags, 0o600)

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
    """For how many seconds the holder of a lock file still expects to write."""
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
        """Whether the lock was granted; if not in time, it never will be."""
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
