"""Connections that stop waiting for a server that does not answer."""

from __future__ import annotations

import contextlib
import enum
import time
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn, TypeVar

import psycopg
from psycopg import AsyncConnection, Connection, errors
from psycopg.abc import PQGen

from holdfast.backends.postgres._errors import WAIT_TIMEOUT

T = TypeVar("T")

# Seconds between checks whether the program is being interrupted.
INTERVAL = 0.1
# The share of a call's time that is kept for cancelling its statement.
CANCEL_SHARE, LONGEST_CANCEL = 0.2, 1.0
# Never wait less than this, however late it is: a rollback has to be possible.
SHORTEST = 0.1

# A commit cancelled while it waits for a standby says that it succeeded locally, but
# the standby has not confirmed it: report it as not known to be durable.
NOT_CONFIRMED = "it was finished, but perhaps not as safely as it has to be"


class Limit(enum.Enum):
    """The part of a call that must not take longer than the timeout."""

    CALL = enum.auto()
    # Many statements, each of which may wait for a lock.
    STATEMENT = enum.auto()
    # Work on whole tables: it goes on as long as the server answers others.
    ANSWER = enum.auto()


class _Timed:
    """The time that a connection waits for the server."""

    timeout: float = 5.0
    # How long cancelling a statement may take, with the server's answer.
    time_to_cancel: float = 1.0
    limit: Limit = Limit.STATEMENT
    # When the call has to be over, if the whole call is limited.
    deadline: float = 0.0

    def set_timeout(self, seconds: float) -> None:
        """Wait so long for the server."""
        self.timeout = seconds
        self.time_to_cancel = min(LONGEST_CANCEL, seconds * CANCEL_SHARE)

    def time_to_wait(self) -> float:
        """The time to wait for an answer."""
        longest = self.timeout
        if self.limit is Limit.CALL:
            longest = self.deadline - time.monotonic()
        return max(SHORTEST, longest - self.time_to_cancel)


class TimedConnection(Connection[tuple[Any, ...]], _Timed):
    """A `Connection` whose statements wait no longer than the call may take."""

    is_alive: Callable[[], bool]

    def wait(
        self, gen: PQGen[T], interval: float = INTERVAL, timeout: float | None = None
    ) -> T:
        if timeout is not None:
            return super().wait(gen, interval, timeout)
        while True:
            try:
                return super().wait(gen, interval, self.time_to_wait())
            except WAIT_TIMEOUT:
                if self.limit is not Limit.ANSWER or not self.is_alive():
                    return self._cancel(gen, interval)

    def _cancel(self, gen: PQGen[T], interval: float) -> NoReturn:
        """End a statement for which the time is over."""
        half = self.time_to_cancel / 2
        with contextlib.suppress(psycopg.Error):
            self.cancel_safe(timeout=half)
        super().wait(gen, interval, half)
        raise errors.QueryCanceled(NOT_CONFIRMED)


class TimedAsyncConnection(AsyncConnection[tuple[Any, ...]], _Timed):
    """A `TimedConnection` that is awaited."""

    is_alive: Callable[[], Awaitable[bool]]

    async def wait(
        self, gen: PQGen[T], interval: float = INTERVAL, timeout: float | None = None
    ) -> T:
        if timeout is not None:
            return await super().wait(gen, interval, timeout)
        while True:
            try:
                return await super().wait(gen, interval, self.time_to_wait())
            except WAIT_TIMEOUT:
                if self.limit is not Limit.ANSWER or not await self.is_alive():
                    return await self._cancel(gen, interval)

    async def _cancel(self, gen: PQGen[T], interval: float) -> NoReturn:
        half = self.time_to_cancel / 2
        with contextlib.suppress(psycopg.Error):
            await self.cancel_safe(timeout=half)
        await super().wait(gen, interval, half)
        raise errors.QueryCanceled(NOT_CONFIRMED)
