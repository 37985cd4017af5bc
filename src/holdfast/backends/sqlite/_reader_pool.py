"""Connections for reading, lent for one short read each.

Before a fork all of them are closed. A child that inherits an open connection also
inherits SQLite's belief that this process holds its locks, which is not true of the
child; a connection that the child then opens to the same file works without locks.
"""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Generator

import apsw

# How often, in seconds, a fork looks whether a reader is gone without having left.
LOOK = 0.05


class Visit:
    """Is there as long as a reader is, however its read ends.

    A signal's handler can raise between any two calls of the main thread, also in what
    counts a reader less.
    """

    __slots__ = ("__weakref__",)


class ReaderPool:
    """Connections for reads that run at the same time, kept for the next read."""

    def __init__(self, connect: Callable[[], apsw.Connection]) -> None:
        self._connect = connect
        self._entrance = threading.Lock()
        # Entered by itself: a signal's handler can break into `Condition.__enter__`.
        self._mutex = threading.Lock()
        self._returned = threading.Condition(self._mutex)
        self._visits: set[weakref.ref[Visit]] = set()
        self._idle: deque[apsw.Connection] = deque()
        self._closed = False

    @property
    def is_empty(self) -> bool:
        """True if no connection is open, lent or idle."""
        return not self._idle and not self._visits

    @contextlib.contextmanager
    def lend(self) -> Generator[apsw.Connection]:
        """A connection for one read; one that failed is closed and not used again."""
        visit = self.enter()
        db: apsw.Connection | None = None
        try:
            db = self._take_idle() or self._connect()
            yield db
            if not self._closed:
                self._idle.append(db)
                db = None
        finally:
            if db is not None:
                db.close()
            self.leave(visit)

    def _take_idle(self) -> apsw.Connection | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def enter(self) -> Visit:
        """Count one more reader; waits while a fork is under way."""
        visit = Visit()
        with self._entrance, self._mutex:
            self._visits.add(weakref.ref(visit, self._visits.discard))
        return visit

    def leave(self, visit: Visit) -> None:
        """Count one reader less; its connection is back, or closed."""
        with self._mutex:
            self._visits.discard(weakref.ref(visit))
            self._returned.notify_all()

    def pause(self, timeout: float) -> bool:
        """Let no reader in until `resume`; close every connection once all are back.

        False, and nothing changed, if they are not back in time.
        """
        if not self._entrance.acquire(timeout=timeout):
            return False
        until = time.monotonic() + timeout
        with self._mutex:
            while self._visits:
                left = until - time.monotonic()
                if left <= 0:
                    self._entrance.release()
                    return False
                self._returned.wait(min(left, LOOK))
        self.close_idle()
        return True

    def resume(self) -> None:
        """Let readers in again."""
        self._entrance.release()

    def close(self) -> None:
        """Close the idle connections now, and the lent ones when they come back."""
        self._closed = True
        self.close_idle()

    def close_idle(self) -> None:
        """Close the connections that are not lent."""
        while (db := self._take_idle()) is not None:
            db.close()
