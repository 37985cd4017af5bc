"""Sessions on PostgreSQL: blocking and native async behind one asynchronous face.

The backend is written once, as coroutines over a `Session`. Those of the blocking
sessions never suspend.
"""

from __future__ import annotations

import contextlib
import enum
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from typing import Any, NoReturn, Protocol, TypeVar

import msgspec
import psycopg
from psycopg import AsyncConnection, AsyncCursor, Connection, Cursor, errors
from psycopg.abc import AdaptContext, PQGen
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult
from psycopg.rows import tuple_row
from psycopg.types.numeric import Int8BinaryDumper

from holdfast.backends.postgres._arrays import teach
from holdfast.errors import Busy, HoldfastError

T = TypeVar("T")
Row = tuple[Any, ...]

# Between looks whether the program is being interrupted.
INTERVAL = 0.1
# Of a call's time, what is kept for telling the server that nobody waits any more.
LAST_PART, LONGEST_LAST_PART = 0.2, 1.0
# Shorter than this makes no sense, however late it is: a rollback has to be possible.
SHORTEST = 0.1
# Statements are prepared when they have been run so often: before, it is another trip.
PREPARED_AFTER = 2

# A commit that is called off while it waits for a standby says that it was made: here
# it was, but whoever is told so relies on more.
FINISHED_UNSEEN = "it was finished, but perhaps not as safely as it has to be"

# What the server ended in order to let another transaction go on.
CONTENDED = (errors.SerializationFailure, errors.DeadlockDetected)
LEFT_TO_CALLERS = (*CONTENDED, errors.UniqueViolation)
# A server that goes down, comes up, or was made a standby: another connection may do.
TURNED_AWAY = (
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.CannotConnectNow,
    errors.ReadOnlySqlTransaction,
    errors.IdleInTransactionSessionTimeout,
    errors.IdleSessionTimeout,
)
# The session is not the one in which a statement was prepared.
NOT_PREPARED = (errors.InvalidSqlStatementName, errors.DuplicatePreparedStatement)
# The only name it has.
WAIT_TIMEOUT: type[psycopg.Error] = vars(errors)["_WaitTimeout"]


class Sharing(msgspec.Struct):
    """Whether a pooler in between gives each transaction another connection."""

    yes: bool = False


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How to connect: where, with how many connections and how much patience."""

    conninfo: str
    smallest: int = 1
    largest: int = 10
    timeout: float = 5.0
    read_only: bool = False
    durable: bool = True
    partitions: int | None = None
    sharing: Sharing = msgspec.field(default_factory=Sharing)


class Lost(Exception):
    """The connection broke; whether the last statement took effect is not known."""


class Unreached(Lost):
    """There was no connection in the first place: nothing can have taken effect."""


class NoneFree(Unreached):
    """There was no connection to be had, though nothing says that the server is off."""


def broken(lost: Lost) -> HoldfastError:
    """What a caller is told when no connection could be had, or kept, in time."""
    if isinstance(lost, NoneFree):
        return Busy(f"{lost}; retry")
    return HoldfastError(
        f"the connection to PostgreSQL broke: {lost}; retry when it is back",
        code="connection_lost",
    )


class Session(Protocol):
    """A connection on which named statements can be run."""

    async def rows(self, statement: bytes, values: Mapping[str, Any]) -> list[Row]:
        """All rows of a statement."""
        ...

    def transaction(self) -> contextlib.AbstractAsyncContextManager[None]:
        """Several statements, all or none; a savepoint if there is a transaction."""
        ...

    async def begin(self) -> None:
        """Be in a transaction, unless every statement is one of its own."""
        ...

    @property
    def process(self) -> int:
        """The server's process as the connection was told of it."""
        ...

    async def close(self) -> None:
        """Close the connection; for those that are not given back."""
        ...


# --- waiting --------------------------------------------------------------------------


class Limit(enum.Enum):
    """What must not take longer than the timeout."""

    CALL = enum.auto()
    # Many statements, each of which may wait for a lock.
    STATEMENT = enum.auto()
    # Work on all of the tables: it goes on as long as the server lives.
    ANSWER = enum.auto()


class _Timed:
    """A connection that gives up waiting for a server that does not answer."""

    patience: float = 5.0
    limit: Limit = Limit.STATEMENT
    # When the call has to be over, if that is limited.
    deadline: float = 0.0

    def time_to_wait(self) -> float:
        """How long to wait for an answer."""
        longest = self.patience
        if self.limit is Limit.CALL:
            longest = self.deadline - time.monotonic()
        return max(SHORTEST, longest - self.time_to_call_off())

    def time_to_call_off(self) -> float:
        """How long it may take to tell the server, and the server to say yes."""
        return min(LONGEST_LAST_PART, self.patience * LAST_PART)


class TimedConnection(Connection[Row], _Timed):
    """As `Connection`, but a statement waits no longer than the call may take."""

    lives: Callable[[], bool]

    def wait(
        self, gen: PQGen[T], interval: float = INTERVAL, timeout: float | None = None
    ) -> T:
        if timeout is not None:
            return super().wait(gen, interval, timeout)
        while True:
            try:
                return super().wait(gen, interval, self.time_to_wait())
            except WAIT_TIMEOUT:
                if self.limit is not Limit.ANSWER or not self.lives():
                    return self._call_off(gen, interval)

    def _call_off(self, gen: PQGen[T], interval: float) -> NoReturn:
        """End a statement that nobody waits for."""
        half = self.time_to_call_off() / 2
        with contextlib.suppress(psycopg.Error):
            self.cancel_safe(timeout=half)
        super().wait(gen, interval, half)
        raise errors.QueryCanceled(FINISHED_UNSEEN)


class TimedAsyncConnection(AsyncConnection[Row], _Timed):
    """As `TimedConnection`, awaited."""

    lives: Callable[[], Awaitable[bool]]

    async def wait(
        self, gen: PQGen[T], interval: float = INTERVAL, timeout: float | None = None
    ) -> T:
        if timeout is not None:
            return await super().wait(gen, interval, timeout)
        while True:
            try:
                return await super().wait(gen, interval, self.time_to_wait())
            except WAIT_TIMEOUT:
                if self.limit is not Limit.ANSWER or not await self.lives():
                    return await self._call_off(gen, interval)

    async def _call_off(self, gen: PQGen[T], interval: float) -> NoReturn:
        half = self.time_to_call_off() / 2
        with contextlib.suppress(psycopg.Error):
            await self.cancel_safe(timeout=half)
        await super().wait(gen, interval, half)
        raise errors.QueryCanceled(FINISHED_UNSEEN)


# --- errors ---------------------------------------------------------------------------


@contextlib.contextmanager
def translated(
    connection: Connection[Any] | AsyncConnection[Any],
    sharing: Sharing | None = None,
) -> Generator[None]:
    """Turn the driver's errors into ours, in one place.

    Without ``sharing`` the connection is a caller's, and stays as it is.
    """
    try:
        yield
    except LEFT_TO_CALLERS:
        raise
    except psycopg.Error as error:
        gone = connection.closed or connection.broken
        if sharing is not None:
            found = _own_translation(error, sharing, gone=gone)
            if isinstance(found, Lost) or isinstance(error, WAIT_TIMEOUT):
                connection.pgconn.finish()  # nobody shall use it again
            raise found from error
        raise (Lost(_text(error)) if gone else _translation(error)) from error


def _own_translation(
    error: psycopg.Error, sharing: Sharing, *, gone: bool
) -> Lost | HoldfastError:
    if isinstance(error, NOT_PREPARED):
        sharing.yes = True
        return Lost(_text(error))
    if isinstance(error, WAIT_TIMEOUT):
        return Busy("the server did not answer in time; retry")
    if gone or isinstance(error, TURNED_AWAY) or "cached plan" in str(error):
        return Lost(_text(error))
    return _translation(error)


def _translation(error: psycopg.Error) -> HoldfastError:
    text = _text(error)
    if isinstance(error, errors.QueryCanceled | errors.LockNotAvailable):
        return Busy(f"the server gave up waiting: {text}; retry")
    if isinstance(error, errors.DiskFull):
        return HoldfastError(f"the server's disk is full: {text}", code="disk_full")
    return HoldfastError(f"PostgreSQL refused: {text}", code="database")


def _text(error: psycopg.Error) -> str:
    return str(error).strip() or type(error).__name__


# --- sessions -------------------------------------------------------------------------


class BlockingSession:
    """A psycopg connection whose coroutines never suspend."""

    def __init__(
        self, connection: Connection[Any], sharing: Sharing | None = None
    ) -> None:
        self.connection = connection
        self._sharing = sharing

    async def rows(self, statement: bytes, values: Mapping[str, Any]) -> list[Row]:
        with translated(self.connection, self._sharing):
            cursor = Cursor(self.connection, row_factory=tuple_row)
            if self._sharing is None:
                teach_all(cursor)
            cursor.execute(statement, values, binary=True)
            return cursor.fetchall() if _has_rows(cursor.pgresult) else []

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncGenerator[None]:
        with translated(self.connection, self._sharing), self.connection.transaction():
            yield

    async def begin(self) -> None:
        if not self.connection.autocommit:
            await self.rows(b"select 1", {})

    @property
    def process(self) -> int:
        return self.connection.info.backend_pid

    async def close(self) -> None:
        self.connection.close()


class NativeSession:
    """A psycopg connection that is awaited."""

    def __init__(
        self, connection: AsyncConnection[Any], sharing: Sharing | None = None
    ) -> None:
        self.connection = connection
        self._sharing = sharing

    async def rows(self, statement: bytes, values: Mapping[str, Any]) -> list[Row]:
        with translated(self.connection, self._sharing):
            cursor = AsyncCursor(self.connection, row_factory=tuple_row)
            if self._sharing is None:
                teach_all(cursor)
            await cursor.execute(statement, values, binary=True)
            return await cursor.fetchall() if _has_rows(cursor.pgresult) else []

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncGenerator[None]:
        with translated(self.connection, self._sharing):
            async with self.connection.transaction():
                yield

    async def begin(self) -> None:
        if not self.connection.autocommit:
            await self.rows(b"select 1", {})

    @property
    def process(self) -> int:
        return self.connection.info.backend_pid

    async def close(self) -> None:
        await self.connection.close()


def _has_rows(result: PGresult | None) -> bool:
    return result is not None and result.status == ExecStatus.TUPLES_OK


def teach_all(place: AdaptContext) -> None:
    """Let a connection or cursor send our arrays, and all numbers as the same type.

    Otherwise a statement would be prepared again for every size of its numbers.
    """
    teach(place.adapters)
    place.adapters.register_dumper(int, Int8BinaryDumper)
