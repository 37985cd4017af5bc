"""Sources of sessions: the protocol, a caller's connection, and options to connect."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar, cast

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg.conninfo import conninfo_to_dict

from holdfast.backends._sql.rows import Row
from holdfast.backends.postgres._listener import BlockingPoller, Listener, NativePoller
from holdfast.backends.postgres._server import PATH, Settings, check_path
from holdfast.backends.postgres._session import (
    BlockingSession,
    NativeSession,
    Session,
)
from holdfast.backends.postgres._timeout import Limit
from holdfast.errors import Unstorable, Unsupported

T = TypeVar("T")
Work = Callable[[Session], Awaitable[T]]

# libpq waits at least so long for each of the hosts in an address.
CONNECT_SECONDS = 2


class Connections(Protocol):
    """A source of sessions: a pool, or a caller's connection."""

    @property
    def blocking(self) -> bool: ...

    @property
    def listener(self) -> Listener: ...

    async def take(self, limit: Limit, deadline: float) -> Session:
        """A session for one caller, to be given back; `Lost` if there is none."""
        ...

    async def take_separate(self, limit: Limit) -> Session:
        """A session outside of the pool, for long work; to be closed."""
        ...

    async def give_back(
        self, session: Session, error: BaseException | None = None
    ) -> None:
        """Take a session back, after an error perhaps; a broken one is thrown away."""
        ...

    async def pause(self, seconds: float) -> None:
        """Wait."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


async def use(
    connections: Connections, work: Work[T], limit: Limit, deadline: float
) -> T:
    """Do something with a session."""
    session = await connections.take(limit, deadline)
    try:
        result = await work(session)
    except BaseException as error:
        await connections.give_back(session, error)
        raise
    await connections.give_back(session)
    return result


# --- a caller's connection ------------------------------------------------------------


class Borrowed:
    """A caller's connection: everything happens in the caller's transaction."""

    def __init__(self, session: Session, listener: Listener, *, blocking: bool) -> None:
        self.blocking = blocking
        self.listener = listener
        self._session = session
        self._is_checked = False

    async def take(self, limit: Limit, deadline: float) -> Session:
        """The caller's connection; its timeouts are left to the caller."""
        del limit, deadline
        await self._session.begin()
        if not self._is_checked:
            [(path,)] = await self._session.rows(PATH, {})
            check_path(path)
            self._is_checked = True
        return self._session

    async def take_separate(self, limit: Limit) -> Session:
        del limit
        raise Unsupported("a transaction shows no other moment; use the store itself")

    async def give_back(
        self, session: Session, error: BaseException | None = None
    ) -> None:
        """Do nothing: the connection stays with the caller."""

    async def pause(self, seconds: float) -> None:
        """Do not wait: a borrowed connection retries nothing."""

    async def close(self) -> None:
        """Do nothing: the caller closes the connection."""


def borrowed(connection: object) -> Borrowed:
    """The caller's connection as a source of sessions."""
    if isinstance(connection, Connection):
        blocking_one = BlockingSession(cast("Connection[Row]", connection))
        return Borrowed(blocking_one, BlockingPoller(), blocking=True)
    if isinstance(connection, AsyncConnection):
        native_one = NativeSession(cast("AsyncConnection[Row]", connection))
        return Borrowed(native_one, NativePoller(), blocking=False)
    kind = type(connection).__name__
    raise Unstorable("connection", f"must be psycopg's, not {kind}")


# --- how connections are made ---------------------------------------------------------


# The hosts of an address, and the database that stands before its options.
_PARTS = re.compile(r"[^:]*://([^/?]*)([^?]*)")
_PORT = re.compile(r"[0-9]*")


def checked_conninfo(conninfo: str) -> str:
    """An address that the driver understands."""
    if not _is_sound(conninfo):
        # The error names neither the address nor the driver's text about it: where it
        # cannot be parsed, any part can be the password. It is raised outside of the
        # `except`, so that its context has neither.
        raise Unstorable(
            "url",
            "is no address of PostgreSQL, postgresql://user:password@host:port/database;"
            " in names and passwords write / : @ ? # % as %2F %3A %40 %3F %23 %25",
        )
    return conninfo


def _is_sound(conninfo: str) -> bool:
    try:
        parts = conninfo_to_dict(conninfo)
    except psycopg.Error:
        return False
    found = _PARTS.match(conninfo)
    # For the driver a slash in a password ends the hosts: it takes one part of the
    # password for a port and the rest for a database.
    return (
        found is not None
        and "@" not in found[2]
        and all(_PORT.fullmatch(port) for port in str(parts.get("port", "")).split(","))
    )


def connect_options(settings: Settings) -> dict[str, Any]:
    """The options of the driver for a new connection.

    Nothing is set for the session: behind a pooler, the next transaction may run in
    another session.
    """
    given = conninfo_to_dict(settings.conninfo)
    wanted: dict[str, Any] = {"connect_timeout": CONNECT_SECONDS}
    if "," in str(given.get("host", "")) and not settings.read_only:
        wanted["target_session_attrs"] = "read-write"
    wanted["fallback_application_name"] = "holdfast"
    # UTF-8 encodes any text, whatever the address asks for.
    return {**wanted, **given, "client_encoding": "utf8", "autocommit": True}
