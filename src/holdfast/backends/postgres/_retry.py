"""Sessions for work with named statements, repeated on another if one breaks."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from holdfast.backends.postgres._conflicts import outdated_view
from holdfast.backends.postgres._connections import Borrowed, Connections, use
from holdfast.backends.postgres._errors import NOT_TRANSLATED, Lost, Unreached, broken
from holdfast.backends.postgres._session import Session
from holdfast.backends.postgres._settings import Settings
from holdfast.backends.postgres._statements import Statements
from holdfast.backends.postgres._timeout import Limit
from holdfast.errors import Busy, HoldfastError

T = TypeVar("T")
Work = Callable[[Statements], Awaitable[T]]

# The first retries are immediate, as many as a pool can have broken connections; then
# this many seconds lie between them.
PAUSE = 0.05


class Attempts:
    """The attempts of one call."""

    def __init__(
        self, settings: Settings, limit: Limit, deadline: float | None = None
    ) -> None:
        self.limit = limit
        self.deadline = deadline or time.monotonic() + settings.timeout
        self._settings = settings
        self._count = 0

    def pause_after(self, error: Exception) -> float:
        """How long to wait before the next attempt; raises if the time is over."""
        is_cut_short = isinstance(error, Lost) and not isinstance(error, Unreached)
        if is_cut_short and self.limit is not Limit.CALL and not self._count:
            # The first attempt was not limited as a whole; the retries are.
            self.deadline = time.monotonic() + self._settings.timeout
        self._count += 1
        if time.monotonic() > self.deadline:
            raise _final_error(error) from error
        return PAUSE if self._count > self._settings.largest else 0.0


def _final_error(error: Exception) -> HoldfastError:
    if isinstance(error, Lost):
        return broken(error)
    return Busy("the server kept ending the transaction; retry")


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

        async def attempt(tried: Attempts) -> T:
            session = await connections.take(tried.limit, tried.deadline)
            try:
                db = Statements(session, self._statements)
                if not self.is_borrowed:
                    return await work(db)
                async with db.transaction():  # a failure must not end the caller's
                    return await work(db)
            finally:
                await connections.give_back(session)

        return await self.retry(attempt, limit, deadline)

    async def use_once(self, work: Work[T], deadline: float) -> T:
        """Do some work without retrying; every error reaches the caller."""

        async def on_session(session: Session) -> T:
            return await work(Statements(session, self._statements))

        return await use(self._connections, on_session, Limit.CALL, deadline)

    async def retry(
        self,
        attempt: Callable[[Attempts], Awaitable[T]],
        limit: Limit,
        deadline: float | None = None,
    ) -> T:
        """Try something as long as there is time."""
        attempts = Attempts(self.settings, limit, deadline)
        while True:
            try:
                return await attempt(attempts)
            except (*NOT_TRANSLATED, Lost) as error:
                if self.is_borrowed:
                    raise _borrowed_error(error) from error
                await self._connections.pause(attempts.pause_after(error))


def _borrowed_error(error: Exception) -> HoldfastError:
    """In a caller's transaction nothing can be retried: only the caller can."""
    return broken(error) if isinstance(error, Lost) else outdated_view()
