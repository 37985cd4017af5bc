"""Pools of connections to PostgreSQL: blocking, and native async."""

from __future__ import annotations

import asyncio
import os
import threading
import time
import weakref
from typing import NamedTuple, cast

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg_pool import AsyncConnectionPool, ConnectionPool, PoolClosed, PoolTimeout

from holdfast.backends.postgres._connections import (
    SHORT_SLICE,
    WORKERS,
    Patience,
    arguments,
    threshold,
    time_to_close,
)
from holdfast.backends.postgres._driver import (
    BlockingSession,
    Limit,
    NativeSession,
    Session,
    Settings,
    TimedAsyncConnection,
    TimedConnection,
    Unreached,
    teach_all,
)
from holdfast.backends.postgres._listener import BlockingEar, Ear, NativeEar
from holdfast.backends.postgres._log_filter import POOL, be_quiet
from holdfast.errors import Closed, HoldfastError

# --- blocking -------------------------------------------------------------------------


class BlockingConnections:
    """A pool of blocking connections."""

    blocking = True

    def __init__(self, settings: Settings, channel: str) -> None:
        self._settings = settings
        self._channel = channel
        self._closed = False
        self._begin()
        be_quiet()
        _all_blocking.add(self)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._patience = Patience(self._settings)
        self._pool: ConnectionPool[TimedConnection] | None = None
        self.ear: Ear = BlockingEar(self.connect, self._channel, self._settings.sharing)

    def _opened(self) -> ConnectionPool[TimedConnection]:
        with self._lock:
            if self._closed:
                raise Closed
            if self._pool is None:
                # The pool asks a class for connections, and we are as good as one.
                maker = cast("type[TimedConnection]", self)
                self._pool = ConnectionPool(
                    connection_class=maker,
                    min_size=self._settings.smallest,
                    max_size=self._settings.largest,
                    open=True,
                    reconnect_timeout=SHORT_SLICE,
                    num_workers=WORKERS,
                    name=POOL,
                )
            return self._pool

    def connect(self, *_: object, **__: object) -> TimedConnection:
        """A new connection."""
        try:
            made = TimedConnection.connect(**arguments(self._settings))
        except psycopg.Error as error:
            self._patience.failure = error
            raise
        self._patience.failure = None
        teach_all(made)
        made.patience = self._settings.timeout
        made.lives = self._lives
        return made

    def _lives(self) -> bool:
        """Whether the server answers somebody else, and so is only busy with us."""
        try:
            with Connection.connect(**arguments(self._settings)):
                return True
        except psycopg.Error:
            return False

    async def take(self, limit: Limit, deadline: float) -> BlockingSession:
        pool = self._pool or self._opened()
        try:
            connection = pool.getconn(self._patience.time_in_line(deadline))
        except PoolClosed:
            raise Closed from None
        except PoolTimeout:
            made = pool.get_stats()["pool_size"]
            raise self._patience.disappointment(made) from None
        connection.limit, connection.deadline = limit, deadline
        connection.prepare_threshold = threshold(self._settings)
        return BlockingSession(connection, self._settings.sharing)

    async def take_apart(self, limit: Limit) -> BlockingSession:
        if self._closed:
            raise Closed
        try:
            connection = self.connect()
        except psycopg.Error as error:
            raise Unreached(str(error).strip()) from error
        connection.limit = limit
        connection.prepare_threshold = threshold(self._settings)
        return BlockingSession(connection, self._settings.sharing)

    async def give(self, session: Session) -> None:
        assert isinstance(session, BlockingSession)
        assert self._pool is not None
        self._pool.putconn(cast("TimedConnection", session.connection))

    async def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    async def close(self) -> None:
        with self._lock:
            self._closed = True
        await self.ear.close()
        if self._pool is not None:
            self._pool.close(timeout=time_to_close(self._settings))

    def after_fork_in_child(self) -> None:
        """Begin anew, with connections that nobody else talks on."""
        if self._pool is not None:
            vars(self._pool)["_closed"] = True  # it would wait for its threads
            _left_behind.append((self._pool, self.ear))
        self._begin()


_all_blocking: weakref.WeakSet[BlockingConnections] = weakref.WeakSet()
# What was made elsewhere: neither to be used nor freed, for that would be to use it.
_left_behind: list[object] = []


def _after_fork_in_child() -> None:
    for connections in list(_all_blocking):
        connections.after_fork_in_child()


os.register_at_fork(after_in_child=_after_fork_in_child)


# --- native async ---------------------------------------------------------------------


class Home(NamedTuple):
    """Where a pool is at home."""

    process: int
    loop: asyncio.AbstractEventLoop


class NativeConnections:
    """A pool of asynchronous connections, opened in the loop that first uses it."""

    blocking = False

    def __init__(self, settings: Settings, channel: str) -> None:
        self._settings = settings
        self._patience = Patience(settings)
        self._pool: AsyncConnectionPool[TimedAsyncConnection] | None = None
        self._home: Home | None = None
        self._channel = channel
        self._closed = False
        self._returning: set[asyncio.Task[None]] = set()
        be_quiet()
        self.ear = NativeEar(self.connect, channel, settings.sharing)

    async def _opened(self) -> AsyncConnectionPool[TimedAsyncConnection]:
        if self._closed:
            raise Closed
        here = Home(os.getpid(), asyncio.get_running_loop())
        if self._home not in (None, here):
            self._leave()
        if self._pool is not None:
            return self._pool
        self._home = here
        self._pool = AsyncConnectionPool(
            connection_class=cast("type[TimedAsyncConnection]", self),
            min_size=self._settings.smallest,
            max_size=self._settings.largest,
            open=False,
            reconnect_timeout=SHORT_SLICE,
            num_workers=WORKERS,
            name=POOL,
        )
        await self._pool.open()
        return self._pool

    def _leave(self) -> None:
        """Forget what belongs to a parent process, or to a loop that is over."""
        assert self._home is not None
        if self._home.process == os.getpid():
            if not self._home.loop.is_closed():
                raise HoldfastError(
                    "the store is used in another event loop; open it again in this",
                    code="other_loop",
                )
            self.ear.drop()
            for connection in vars(self._pool)["_pool"]:
                connection.pgconn.finish()
        _left_behind.append((self._pool, self.ear))
        self._pool = None
        self.ear = NativeEar(self.connect, self._channel, self._settings.sharing)

    async def connect(self, *_: object, **__: object) -> TimedAsyncConnection:
        """A new connection."""
        try:
            made = await TimedAsyncConnection.connect(**arguments(self._settings))
        except psycopg.Error as error:
            self._patience.failure = error
            raise
        self._patience.failure = None
        teach_all(made)
        made.patience = self._settings.timeout
        made.lives = self._lives
        return made

    async def _lives(self) -> bool:
        try:
            async with await AsyncConnection.connect(**arguments(self._settings)):
                return True
        except psycopg.Error:
            return False

    async def take(self, limit: Limit, deadline: float) -> NativeSession:
        pool = await self._opened()
        try:
            connection = await pool.getconn(self._patience.time_in_line(deadline))
        except PoolClosed:
            raise Closed from None
        except PoolTimeout:
            made = pool.get_stats()["pool_size"]
            raise self._patience.disappointment(made) from None
        connection.limit, connection.deadline = limit, deadline
        connection.prepare_threshold = threshold(self._settings)
        return NativeSession(connection, self._settings.sharing)

    async def take_apart(self, limit: Limit) -> NativeSession:
        if self._closed:
            raise Closed
        try:
            connection = await self.connect()
        except psycopg.Error as error:
            raise Unreached(str(error).strip()) from error
        connection.limit = limit
        connection.prepare_threshold = threshold(self._settings)
        return NativeSession(connection, self._settings.sharing)

    async def give(self, session: Session) -> None:
        assert isinstance(session, NativeSession)
        assert self._pool is not None
        connection = cast("TimedAsyncConnection", session.connection)
        task = asyncio.current_task()
        if task is None or not task.cancelling():
            await self._pool.putconn(connection)
            return
        # Whoever is being cancelled may be so again, and must not take it along.
        returning = asyncio.create_task(self._pool.putconn(connection))
        self._returning.add(returning)
        returning.add_done_callback(self._returning.discard)
        await asyncio.shield(returning)

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        self._closed = True
        await self.ear.close()
        if self._pool is not None:
            await self._pool.close(timeout=time_to_close(self._settings))
