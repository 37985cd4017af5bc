"""A file that at most one process has locked, by the ``flock`` of the kernel.

The kernel wakes the processes that wait in their order. ``flock`` has no timeout, so a
thread waits for the lock and the caller waits for the thread.
"""

from __future__ import annotations

import os
import sys
import threading

from holdfast.errors import Busy

if sys.platform != "win32":
    import fcntl


class LockFile:
    """The lock, and the descriptor of its file while that is open."""

    def __init__(self, path: str, timeout: float) -> None:
        self.path = path
        self.timeout = timeout
        self.descriptor = -1

    @property
    def is_open(self) -> bool:
        """Whether the file is open; what it is locked by can still be removed."""
        return self.descriptor >= 0

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
        try:
            _lock(self.descriptor, wait=False)
        except BlockingIOError:
            return False
        return True

    def wait(self) -> None:
        """Take the lock when it is this process's turn; `Busy` after the timeout."""
        waiter = _Waiter(self.descriptor)
        waiter.start()
        if not waiter.granted_within(self.timeout):
            raise Busy(
                "another process held the write lock past the timeout;"
                " retry, or raise busy_timeout"
            )

    def unlock(self) -> None:
        """Give the lock back; this is allowed without having it."""
        if self.descriptor >= 0:
            _unlock(self.descriptor)


def _lock(file: int, *, wait: bool) -> None:
    # Windows has no flock: there SQLite's own polling for its lock has to do.
    if sys.platform != "win32":
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


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
            _lock(self._file, wait=True)
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
            granted = self._granted.wait(timeout)
        finally:
            # Also when interrupted: otherwise the lock would never be given back.
            with self._decision:
                self._abandoned = not granted
                if self._granted.is_set() and not granted:
                    _unlock(self._owner)
        return granted
