"""Sessions for work with named statements, repeated on another if one breaks."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec

from holdfast.backends._sql.rows import Row
from holdfast.backends.postgres._connections import Borrowed, Connections, use
from holdfast.backends.postgres._errors import (
    NOT_TRANSLATED,
    Lost,
    OnlyReads,
    Unreached,
    broken,
)
from holdfast.backends.postgres._server import Settings, read_only
from holdfast.backends.postgres._session import Session
from holdfast.backends.postgres._statements import Statements
from holdfast.backends.postgres._timeout import Limit
from holdfast.errors import Busy, Conflict, HoldfastError

T = TypeVar("T")
Work = Callable[[Statements], Awaitable[T]]

# The first retries are immediate, as many as a pool can have broken connections; then
# this many seconds lie between them.
PAUSE = 0.05


class Attempts(msgspec.Struct):
    """The attempts of one call."""

    settings: Settings
    limit: Limit
    deadline: float
    count: int = 0

    def pause_after(self, error: Exception) -> float:
        """The time to wait before the next attempt; raises if the time is over."""
        is_cut_short = isinstance(error, Lost) and not isinstance(error, Unreached)
        if is_cut_short and self.limit is not Limit.CALL and not self.count:
            # The first attempt was not limited as a whole; the retries are.
            self.deadline = time.monotonic() + self.settings.timeout
        self.count += 1
        if time.monotonic() > self.deadline:
            if isinstance(error, Lost):
                raise broken(error) from error
            raise Busy("the server kept ending the transaction; retry") from error
        return PAUSE if self.count > self.settings.largest else 0.0


class RetryingSessions:
    """The sessions of a backend."""

    def __init__(
        self,
        connections: Connections,
        settings: Settings,
        statements: dict[str, bytes],
    ) -> None:
        self.settings = settings
        self.is_borrowed = isinstance(connections, Borrowed)
        self.blocking = connections.blocking
        self._connections = connections
        self._statements = statements

    async def use(
        self, work: Work[T], limit: Limit = Limit.CALL, deadline: float | None = None
    ) -> T:
        """Do some work, again if a connection breaks."""
        connections = self._connections
        settings = self.settings
        until = deadline or time.monotonic() + settings.timeout
        attempts = Attempts(settings, limit, until)
        while True:
            # Not with `retry`: its functions and coroutines would slow down a save.
            try:
                session = await connections.take(limit, attempts.deadline)
                try:
                    db = Statements(session, self._statements)
                    if self.is_borrowed:  # a failure must not end the transaction
                        async with db.transaction():
                            return await work(db)
                    found = await work(db)
                except BaseException as error:
                    await connections.give_back(session, error)
                    raise
                await connections.give_back(session)
            except (*NOT_TRANSLATED, Lost) as error:
                await self._pause_after(error, attempts)
            else:
                return found

    async def use_once(self, work: Work[T], deadline: float) -> T:
        """Do some work without retrying; every error reaches the caller."""

        async def on_session(session: Session) -> T:
            return await work(Statements(session, self._statements))

        return await use(self._connections, on_session, Limit.CALL, deadline)

    async def retry(
        self,
        attempt: Callable[[Attempts], Awaitable[T]],
        limit: Limit,
    ) -> T:
        """Repeat an attempt until it succeeds or the time is over."""
        deadline = time.monotonic() + self.settings.timeout
        attempts = Attempts(self.settings, limit, deadline)
        while True:
            try:
                return await attempt(attempts)
            except (*NOT_TRANSLATED, Lost) as error:
                await self._pause_after(error, attempts)

    async def _pause_after(self, error: Exception, attempts: Attempts) -> None:
        if self.is_borrowed:
            raise _borrowed_error(error) from error
        if isinstance(error, OnlyReads):
            await self._check_standby(attempts)
        await self._connections.pause(attempts.pause_after(error))

    async def _check_standby(self, attempts: Attempts) -> None:
        """Raise if no session can write here, or this is still a standby at the end.

        A primary that became a standby is replaced: the next connection may lead to
        the new primary.
        """

        async def look(session: Session) -> Row:
            [found] = await session.rows(self._statements["reads_only"], {})
            return found

        try:
            found = await use(self._connections, look, Limit.CALL, attempts.deadline)
        except Lost:
            return
        reads_only, is_standby = found
        is_over = time.monotonic() > attempts.deadline
        if reads_only and (is_over or not is_standby):
            raise read_only(is_standby=is_standby)


def _borrowed_error(error: Exception) -> HoldfastError:
    """The error in a caller's transaction, which only the caller can repeat."""
    if isinstance(error, Lost):
        return broken(error)
    return Conflict(
        "another transaction changed this since yours began; roll back and repeat it",
        code="serialization",
    )
