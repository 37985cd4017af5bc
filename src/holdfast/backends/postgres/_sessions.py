"""Sessions lent for named statements, and others instead of those that break."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from holdfast.backends.postgres._connections import Borrowed, Connections, use
from holdfast.backends.postgres._driver import (
    LEFT_TO_CALLERS,
    Limit,
    Lost,
    Session,
    Settings,
)
from holdfast.backends.postgres._retry import Trial, only_try
from holdfast.backends.postgres._session import Statements

T = TypeVar("T")
Work = Callable[[Statements], Awaitable[T]]


class Sessions:
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
        """Do something with named statements, again if a connection breaks."""

        async def told(session: Session) -> T:
            db = Statements(session, self._statements)
            if not self.is_borrowed:
                return await work(db)
            async with db.transaction():  # what fails must not spoil the caller's
                return await work(db)

        return await self.persevere(
            lambda trial: use(self._connections, told, trial.limit, trial.deadline),
            limit,
            deadline,
        )

    async def use_once(self, work: Work[T], deadline: float) -> T:
        """Do something with named statements; what goes wrong is the caller's."""

        async def told(session: Session) -> T:
            return await work(Statements(session, self._statements))

        return await use(self._connections, told, Limit.CALL, deadline)

    async def persevere(
        self,
        attempt: Callable[[Trial], Awaitable[T]],
        limit: Limit,
        deadline: float | None = None,
    ) -> T:
        """Try something as long as there is time."""
        trial = Trial(self.settings, limit, deadline)
        while True:
            try:
                return await attempt(trial)
            except (*LEFT_TO_CALLERS, Lost) as error:
                if self.is_borrowed:
                    raise only_try(error) from error
                await self._connections.pause(trial.go_on(error))
