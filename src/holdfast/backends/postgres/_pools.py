"""Pools of connections to PostgreSQL: blocking, and native async."""

from __future__ import annotations

import _thread
import asyncio
import logging
import os
import threading
import time
import weakref
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar, cast

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg_pool import AsyncConnectionPool, ConnectionPool, PoolClosed, PoolTimeout

from holdfast.backends.postgres._connections import connect_options
from holdfast.backends.postgres._errors import ORDERLY, Lost, NoneFree, Unreached
from holdfast.backends.postgres._listener import (
    BlockingListener,
    Listener,
    NativeListener,
)
from holdfast.backends.postgres._server import FIX_PATH, Settings
from holdfast.backends.postgres._session import (
    BlockingSession,
    NativeSession,
    Session,
    register_types,
)
from holdfast.backends.postgres._timeout import (
    SHORTEST,
    Limit,
    TimedAsyncConnection,
    TimedConnection,
)
from holdfast.errors import Closed, HoldfastError

T = TypeVar("T")

# A statement is prepared after so many runs: preparing it earlier costs a round trip.
PREPARED_AFTER = 2
# So many prepared statements are kept; then the one used longest ago is forgotten.
MOST_PREPARED = 200

# Seconds of one wait for a free connection, after which the caller looks again whether
# to wait, and of one while the server cannot be reached. The pool gives up connecting
# after the shorter time too; the next caller makes it try again.
WAIT, SHORT_WAIT = 1.0, 0.25
# Threads, or tasks, that make connections.
WORKERS = 3
# The name of our pools in what psycopg logs, and the classes of our connections.
POOL = "holdfast"
OURS = (TimedConnection, TimedAsyncConnection)


class DebugFilter(logging.Filter):
    """Lowers psycopg's warnings about our pools to DEBUG: callers get errors instead.

    Warnings about the program's own pools and connections are left as they are.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno == logging.WARNING and self._is_ours(record.args):
            record.levelno, record.levelname = logging.DEBUG, "DEBUG"
            return logging.getLogger(record.name).isEnabledFor(logging.DEBUG)
        return True

    def _is_ours(self, arguments: object) -> bool:
        if not isinstance(arguments, tuple):
            return False
        named = cast("tuple[object, ...]", arguments)
        return any(
            argument == POOL
            or isinstance(getattr(argument, "connection", argument), OURS)
            for argument in named
        )


def install_filter() -> None:
    """Add the filter to psycopg's loggers, once."""
    for name in ("psycopg", "psycopg.pool"):
        logger = logging.getLogger(name)
        if not any(isinstance(found, DebugFilter) for found in logger.filters):
            logger.addFilter(DebugFilter())


class PoolWait:
    """The time to wait for a free connection, and the error if there was none.

    Both pools use it.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        # The error of the last attempt to connect, if it failed.
        self.failure: psycopg.Error | None = None

    def seconds(self, deadline: float) -> float:
        """The time to wait in this attempt."""
        longest = WAIT if self.failure is None else SHORT_WAIT
        return max(SHORTEST, min(longest, deadline - time.monotonic()))

    def timeout_error(self, made: int) -> Lost:
        """The error if there was no connection in a pool that has ``made`` some."""
        if self.failure is not None:
            return Unreached(str(self.failure).strip())
        if made >= self._settings.largest:
            return NoneFree(f"all {made} connections are in use; raise pool=")
        return NoneFree("the server does not let us in")


def _pool_options(settings: Settings) -> dict[str, Any]:
    return {
        "min_size": settings.smallest,
        "max_size": settings.largest,
        "reconnect_timeout": SHORT_WAIT,
        "num_workers": WORKERS,
        "name": POOL,
    }


def _time_to_close(settings: Settings) -> float:
    """The time to wait for each worker of a pool, which may be connecting."""
    return min(WAIT, settings.timeout) / WORKERS


Pool = ConnectionPool[TimedConnection]


# --- blocking -------------------------------------------------------------------------


class BlockingConnections:
    """A pool of blocking connections.

    A signal handler can interrupt the main thread inside of the pool. If the handler
    raises, the pool's counts of connections are wrong from then on; if it uses the
    store, the pool's locks are held. So the main thread notes the pool that it takes a
    connection from until it has returned the connection. If it finds a note when it
    takes the next one, it leaves that pool, with its connections, and begins another.
    """

    blocking = True

    def __init__(self, settings: Settings, channel: str) -> None:
        self._settings = settings
        self._channel = channel
        self._closed = False
        self._begin()
        install_filter()
        _all_blocking.add(self)

    def _begin(self) -> None:
        self._lock = threading.RLock()  # a signal's handler may use the store
        self._wait = PoolWait(self._settings)
        self._pool: Pool | None = None
        # The pool of which the main thread has, or is about to get, a connection.
        self._used_by_main: Pool | None = None
        self.listener: Listener = BlockingListener(
            self.connect, self._channel, self._settings.pooler
        )

    def _opened(self) -> Pool:
        with self._lock:
            if self._closed:
                raise Closed
            if self._pool is None:
                # The pool only calls ``connect`` of the class: this object has it too.
                maker = cast("type[TimedConnection]", self)
                # The pool may grow only after it has lent its first connection:
                # otherwise it would make a second one while its first caller waits.
                options = _pool_options(self._settings)
                options |= {"min_size": min(1, self._settings.smallest), "max_size": 1}
                self._pool = ConnectionPool(
                    connection_class=maker, open=True, **options
                )
            return self._pool

    def connect(self, *_: object, **__: object) -> TimedConnection:
        """A new connection."""
        try:
            made = TimedConnection.connect(**connect_options(self._settings))
        except psycopg.Error as error:
            self._wait.failure = error
            raise
        self._wait.failure = None
        register_types(made)
        made.prepare_threshold, made.prepared_max = PREPARED_AFTER, MOST_PREPARED
        made.set_timeout(self._settings.timeout)
        made.is_alive = self._is_alive
        pooler = self._settings.pooler
        if not pooler.in_use:
            fixed = made.execute(FIX_PATH, [made.info.backend_pid])
            pooler.in_use |= not fixed.rowcount
        return made

    def _is_alive(self) -> bool:
        """True if the server accepts another connection: then it is only busy."""
        try:
            with Connection.connect(**connect_options(self._settings)):
                return True
        except psycopg.Error:
            return False

    async def take(self, limit: Limit, deadline: float) -> BlockingSession:
        if _is_main_thread():
            self._leave_interrupted()
        pool, connection = self._lent(deadline)
        connection.limit, connection.deadline = limit, deadline
        session = BlockingSession(connection, self._settings.pooler)
        session.lender = pool
        return session

    def _lent(self, deadline: float) -> tuple[Pool, TimedConnection]:
        while True:
            pool = self._opened()
            if _is_main_thread():
                self._used_by_main = pool
            try:
                connection = pool.getconn(self._wait.seconds(deadline))
                if pool.max_size < self._settings.largest:
                    pool.resize(self._settings.smallest, self._settings.largest)
            except PoolClosed:
                continue  # left by the main thread, unless the store is closed
            except PoolTimeout:
                made = pool.get_stats()["pool_size"]
                self._end_use()
                raise self._wait.timeout_error(made) from None
            return pool, connection

    def _leave_interrupted(self) -> None:
        """Leave the pool that the main thread was interrupted with."""
        left = self._used_by_main
        if left is None:
            return
        if self._pool is left:
            self._pool = None
        # Another thread closes it: the interrupted call may go on, and hold the pool's
        # lock.
        _thread.start_new_thread(left.close, (_time_to_close(self._settings),))
        self._used_by_main = None

    def _end_use(self) -> None:
        if _is_main_thread():
            self._used_by_main = None

    async def take_separate(self, limit: Limit) -> BlockingSession:
        if self._closed:
            raise Closed
        try:
            connection = self.connect()
        except psycopg.Error as error:
            raise Unreached(str(error).strip()) from error
        connection.limit = limit
        return BlockingSession(connection, self._settings.pooler)

    async def give_back(
        self, session: Session, error: BaseException | None = None
    ) -> None:
        assert isinstance(session, BlockingSession)
        assert session.lender is not None
        # A signal handler can raise any other error, anywhere in the driver.
        if not (error is None or isinstance(error, ORDERLY)):
            session.connection.close()
        session.lender.putconn(session.connection)
        self._end_use()

    async def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    async def close(self) -> None:
        with self._lock:
            self._closed = True
        await self.listener.close()
        if self._pool is not None:
            self._pool.close(timeout=_time_to_close(self._settings))

    def after_fork_in_child(self) -> None:
        """Start with new connections: the parent uses the inherited ones."""
        if self._pool is not None:
            vars(self._pool)["_closed"] = True  # it would wait for its threads
        _left_behind.append((self._pool, self._used_by_main, self.listener))
        self._begin()


def _is_main_thread() -> bool:
    return threading.get_ident() == threading.main_thread().ident


_all_blocking: weakref.WeakSet[BlockingConnections] = weakref.WeakSet()
# Pools of a parent process or of a closed event loop. They are kept: freeing one would
# close its connections, which belong to the other process or loop.
_left_behind: list[object] = []


def _after_fork_in_child() -> None:
    for connections in list(_all_blocking):
        connections.after_fork_in_child()


if hasattr(os, "register_at_fork"):  # Windows has no forks
    os.register_at_fork(after_in_child=_after_fork_in_child)


# --- native async ---------------------------------------------------------------------


class Owner(NamedTuple):
    """The process and event loop that a pool belongs to."""

    process: int
    loop: asyncio.AbstractEventLoop


class EndingPool(AsyncConnectionPool[TimedAsyncConnection]):
    """A pool whose tasks end with their event loop, also if it was not closed.

    The end of a loop cancels all tasks once and waits for them. The pool's workers take
    a cancellation for a connection that failed, and wait for more work. Its scheduler
    uses `asyncio.wait_for`, which before Python 3.12 drops a cancellation that comes
    together with the event.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[TimedAsyncConnection]],
        settings: Settings,
    ) -> None:
        # The pool only calls ``connect`` of the class.
        maker = cast("type[TimedAsyncConnection]", PoolConnector(connect))
        super().__init__(connection_class=maker, open=False, **_pool_options(settings))

    def _start_workers(self) -> None:
        vars(self._sched)["_event"] = SchedulerEvent()
        super()._start_workers()


class PoolConnector:
    """Connects for the workers of a pool, and cancels a cancelled worker again."""

    def __init__(self, make: Callable[[], Awaitable[TimedAsyncConnection]]) -> None:
        self._make = make

    async def connect(self, *_: object, **__: object) -> TimedAsyncConnection:
        """A new connection."""
        worker = asyncio.current_task()
        assert worker is not None
        try:
            return await self._make()
        finally:
            if worker.cancelling():
                asyncio.get_running_loop().call_soon(worker.cancel)


class SchedulerEvent(asyncio.Event):
    """The event that the scheduler of a pool waits for."""

    async def wait_timeout(self, timeout: float) -> bool:
        """True if the event came within so many seconds."""
        try:
            async with asyncio.timeout(timeout):
                return await self.wait()
        except TimeoutError:
            return False


class NativeConnections:
    """A pool of asynchronous connections, opened in the loop that first uses it."""

    blocking = False

    def __init__(self, settings: Settings, channel: str) -> None:
        self._settings = settings
        self._wait = PoolWait(settings)
        self._pool: EndingPool | None = None
        self._owner: Owner | None = None
        self._channel = channel
        self._closed = False
        self._returning: set[asyncio.Task[None]] = set()
        install_filter()
        self.listener = NativeListener(self.connect, channel, settings.pooler)

    async def _opened(self) -> EndingPool:
        if self._closed:
            raise Closed
        self._leave_other()
        if self._pool is not None:
            return self._pool
        self._owner = Owner(os.getpid(), asyncio.get_running_loop())
        self._pool = EndingPool(self.connect, self._settings)
        await self._pool.open()
        return self._pool

    def _leave_other(self) -> None:
        """Forget a pool that belongs to a parent process, or to a closed loop."""
        here = Owner(os.getpid(), asyncio.get_running_loop())
        if self._owner is None or self._owner == here:
            return
        if self._owner.process == here.process:
            if not self._owner.loop.is_closed():
                raise HoldfastError(
                    "the store is used in another event loop, which is to close it;"
                    " open it again in this",
                    code="other_loop",
                )
            self.listener.drop()
            for connection in vars(self._pool)["_pool"]:
                connection.pgconn.finish()
        _left_behind.append((self._pool, self.listener))
        self._pool = self._owner = None
        self.listener = NativeListener(
            self.connect, self._channel, self._settings.pooler
        )

    async def connect(self, *_: object, **__: object) -> TimedAsyncConnection:
        """A new connection."""
        try:
            made = await TimedAsyncConnection.connect(**connect_options(self._settings))
        except psycopg.Error as error:
            self._wait.failure = error
            raise
        self._wait.failure = None
        register_types(made)
        pooler = self._settings.pooler
        made.prepare_threshold, made.prepared_max = PREPARED_AFTER, MOST_PREPARED
        made.set_timeout(self._settings.timeout)
        made.is_alive = self._is_alive
        if not pooler.in_use:
            fixed = await made.execute(FIX_PATH, [made.info.backend_pid])
            pooler.in_use |= not fixed.rowcount
        return made

    async def _is_alive(self) -> bool:
        try:
            options = connect_options(self._settings)
            async with await AsyncConnection.connect(**options):
                return True
        except psycopg.Error:
            return False

    async def take(self, limit: Limit, deadline: float) -> NativeSession:
        pool = await self._opened()
        try:
            connection = await pool.getconn(self._wait.seconds(deadline))
        except PoolClosed:
            raise Closed from None
        except PoolTimeout:
            raise self._wait.timeout_error(pool.get_stats()["pool_size"]) from None
        connection.limit, connection.deadline = limit, deadline
        return NativeSession(connection, self._settings.pooler)

    async def take_separate(self, limit: Limit) -> NativeSession:
        if self._closed:
            raise Closed
        try:
            connection = await self.connect()
        except psycopg.Error as error:
            raise Unreached(str(error).strip()) from error
        connection.limit = limit
        return NativeSession(connection, self._settings.pooler)

    async def give_back(
        self, session: Session, error: BaseException | None = None
    ) -> None:
        del error  # a cancellation comes only where the driver waits, and it is ready
        assert isinstance(session, NativeSession)
        assert self._pool is not None
        connection = cast("TimedAsyncConnection", session.connection)
        # The caller may be cancelled at any moment, even twice: another task returns
        # the connection, so that it is not lost.
        returning = asyncio.create_task(self._pool.putconn(connection))
        self._returning.add(returning)
        returning.add_done_callback(self._returning.discard)
        await asyncio.shield(returning)

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        self._leave_other()
        self._closed = True
        await self.listener.close()
        if self._pool is not None:
            await self._pool.close(timeout=_time_to_close(self._settings))
