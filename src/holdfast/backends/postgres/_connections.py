"""Where sessions come from, how connections are made, and a caller's own."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar, cast

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg.conninfo import conninfo_to_dict

from holdfast.backends.postgres._driver import (
    PREPARED_AFTER,
    SHORTEST,
    BlockingSession,
    Limit,
    Lost,
    NativeSession,
    NoneFree,
    Row,
    Session,
    Settings,
    Unreached,
)
from holdfast.backends.postgres._listener import BlockingSleep, Ear, NativeSleep
from holdfast.errors import Unstorable, Unsupported

T = TypeVar("T")
Work = Callable[[Session], Awaitable[T]]

# How long to stand in line before we look whether the line still moves, and how long
# while the server cannot be reached: the pool itself gives up after as long, and the
# next who comes makes it try again.
SLICE, SHORT_SLICE = 1.0, 0.25
# Threads, or tasks, that make connections.
WORKERS = 3
# libpq waits at least so long for each of the hosts in an address.
CONNECT_SECONDS = 2


class Connections(Protocol):
    """Where sessions come from."""

    @property
    def blocking(self) -> bool: ...

    @property
    def ear(self) -> Ear: ...

    async def take(self, limit: Limit, deadline: float) -> Session:
        """A session of one's own, to be given back; `Lost` if there is none."""
        ...

    async def take_apart(self, limit: Limit) -> Session:
        """A session for long, which nobody has to wait for; to be closed."""
        ...

    async def give(self, session: Session) -> None:
        """Take a session back; a broken one is thrown away."""
        ...

    async def pause(self, seconds: float) -> None:
        """Do nothing for a while."""
        ...

    async def close(self) -> None:
        """Let go of everything."""
        ...


async def use(
    connections: Connections, work: Work[T], limit: Limit, deadline: float
) -> T:
    """Do something with a session."""
    session = await connections.take(limit, deadline)
    try:
        return await work(session)
    finally:
        await connections.give(session)


class Patience:
    """How long to stand in line for a connection, and what to say if there was none."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        # Why the last attempt to connect failed, if it did.
        self.failure: psycopg.Error | None = None

    def time_in_line(self, deadline: float) -> float:
        """How long to wait before we look again."""
        longest = SLICE if self.failure is None else SHORT_SLICE
        return max(SHORTEST, min(longest, deadline - time.monotonic()))

    def disappointment(self, made: int) -> Lost:
        """What to say when there was none."""
        if self.failure is not None:
            return Unreached(str(self.failure).strip())
        if made >= self._settings.largest:
            return NoneFree(f"all {made} connections are in use; raise pool=")
        return NoneFree("the server does not let us in")


# --- a caller's -----------------------------------------------------------------------


class Borrowed:
    """A caller's connection, in whose transaction everything happens."""

    def __init__(self, session: Session, ear: Ear, *, blocking: bool) -> None:
        self.blocking = blocking
        self.ear = ear
        self._session = session

    async def take(self, limit: Limit, deadline: float) -> Session:
        """The caller decides how long it may take."""
        del limit, deadline
        await self._session.begin()
        return self._session

    async def take_apart(self, limit: Limit) -> Session:
        del limit
        raise Unsupported("a transaction shows no other moment; use the store itself")

    async def give(self, session: Session) -> None:
        """It stays with the caller."""

    async def pause(self, seconds: float) -> None:
        """Nothing is tried again."""

    async def close(self) -> None:
        """It is the caller's to close."""


def borrowed(connection: object) -> Borrowed:
    """What a caller gave us."""
    if isinstance(connection, Connection):
        blocking_one = BlockingSession(cast("Connection[Row]", connection))
        return Borrowed(blocking_one, BlockingSleep(), blocking=True)
    if isinstance(connection, AsyncConnection):
        native_one = NativeSession(cast("AsyncConnection[Row]", connection))
        return Borrowed(native_one, NativeSleep(), blocking=False)
    kind = type(connection).__name__
    raise Unstorable("connection", f"must be psycopg's, not {kind}")


# --- how connections are made ---------------------------------------------------------


def time_to_close(settings: Settings) -> float:
    """How long a pool waits for each of its workers, which may be trying to connect."""
    return min(SLICE, settings.timeout) / WORKERS


def checked_conninfo(conninfo: str) -> str:
    """An address that the driver understands."""
    try:
        conninfo_to_dict(conninfo)
    except psycopg.Error as error:
        raise Unstorable("url", f"is no address of PostgreSQL: {error}") from None
    return conninfo


def threshold(settings: Settings) -> int | None:
    """How often a statement is run before it is prepared, if ever."""
    # What is prepared on a connection is lost behind a pooler that shares it.
    return None if settings.sharing.yes else PREPARED_AFTER


def arguments(settings: Settings) -> dict[str, Any]:
    """How connections are made.

    Nothing is set for the session: behind a pooler, the next transaction may be another
    session's.
    """
    given = conninfo_to_dict(settings.conninfo)
    wanted: dict[str, Any] = {"connect_timeout": CONNECT_SECONDS}
    if "," in str(given.get("host", "")) and not settings.read_only:
        wanted["target_session_attrs"] = "read-write"
    wanted["fallback_application_name"] = "holdfast"
    return {**wanted, **given, "autocommit": True}
