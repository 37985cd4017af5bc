"""Follows the feed: waits for notifications of changes, or polls where there are none.

One connection outside of the pool listens for all callers: one of the waiting callers
waits for the server and wakes the others.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import psycopg
from psycopg import AsyncConnection, Connection

from holdfast._values.records import Change, Page
from holdfast.backends.postgres._read import FeedPage
from holdfast.backends.postgres._server import Pooler

# Seconds between reads of the feed without notifications, and with them: then a read
# only finds changes that were missed while the listening connection was broken.
POLL_SECONDS, LISTEN_SECONDS = 0.1, 0.5
# Seconds between reads while a transaction that may add to the feed is running.
SHORTEST_PAUSE, LONGEST_PAUSE = 0.01, 0.2


class Listener(Protocol):
    """Waits for changes; ``count`` grows with every notification."""

    @property
    def count(self) -> int: ...

    async def listen(self) -> bool:
        """Begin to listen, if possible; true if this call began it."""
        ...

    async def wait(self, timeout: float, since: int) -> None:
        """Wait until ``count`` differs from ``since``; may return earlier."""
        ...

    async def close(self) -> None:
        """Stop listening."""
        ...


async def follow(
    read: Callable[[], Awaitable[FeedPage]], listener: Listener, timeout: float
) -> Page[Change]:
    """The first page that is not empty, or an empty one after the timeout."""
    deadline = time.monotonic() + timeout
    pause = SHORTEST_PAUSE
    while True:
        heard = listener.count
        found = await read()
        remaining = deadline - time.monotonic()
        if found.page or remaining <= 0:
            return found.page
        if await listener.listen():
            continue  # read what was committed before we listened
        pause = min(pause * 2, LONGEST_PAUSE) if found.is_pending else SHORTEST_PAUSE
        longest = min(pause, remaining) if found.is_pending else remaining
        await listener.wait(longest, since=heard)


class BlockingPoller:
    """A listener for connections without notifications."""

    count = 0

    async def listen(self) -> bool:
        return False

    async def wait(self, timeout: float, since: int) -> None:
        del since
        time.sleep(min(timeout, POLL_SECONDS))

    async def close(self) -> None:
        """There is nothing to close."""


class NativePoller(BlockingPoller):
    """A `BlockingPoller` that is awaited."""

    async def wait(self, timeout: float, since: int) -> None:
        del since
        await asyncio.sleep(min(timeout, POLL_SECONDS))


class BlockingListener:
    """A connection that listens for all threads of the program."""

    def __init__(
        self, connect: Callable[[], Connection[Any]], channel: str, pooler: Pooler
    ) -> None:
        self._connect = connect
        self.count = 0
        self._channel = channel
        self._pooler = pooler
        self._changed = threading.Condition()
        self._has_leader = False
        self._closed = False
        self._connection: Connection[Any] | None = None

    async def listen(self) -> bool:
        with self._changed:
            if self._connection is not None or self._pooler.in_use or self._closed:
                return False
            with contextlib.suppress(psycopg.Error):
                made = self._connect()
                made.execute(f'listen "{self._channel}"'.encode())
                self._connection = made
            return self._connection is not None

    async def wait(self, timeout: float, since: int) -> None:
        with self._changed:
            connection = self._connection
            if self.count != since:
                return
            if connection is None:
                self._changed.wait(min(timeout, POLL_SECONDS))
                return
            if self._has_leader:
                self._changed.wait(min(timeout, LISTEN_SECONDS))
                return
            self._has_leader = True
        try:
            found = connection.notifies(timeout=min(timeout, LISTEN_SECONDS))
            with contextlib.closing(found):
                self.count += next(found, None) is not None
        except psycopg.Error:
            connection.close()
            with self._changed:
                if self._connection is connection:
                    self._connection = None
        finally:
            with self._changed:
                self._has_leader = False
                self._changed.notify_all()

    async def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: not self._has_leader)
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


class NativeListener:
    """A connection that listens for all tasks of an event loop."""

    def __init__(
        self,
        connect: Callable[[], Awaitable[AsyncConnection[Any]]],
        channel: str,
        pooler: Pooler,
    ) -> None:
        self._connect = connect
        self.count = 0
        self._channel = channel
        self._pooler = pooler
        self._opening: asyncio.Lock | None = None
        # Set when the task that waits for the server is done; ``None`` without one.
        self._leader_done: asyncio.Event | None = None
        self._closed = False
        self._connection: AsyncConnection[Any] | None = None

    async def listen(self) -> bool:
        self._opening = self._opening or asyncio.Lock()
        async with self._opening:
            if self._connection is not None or self._pooler.in_use or self._closed:
                return False
            with contextlib.suppress(psycopg.Error):
                made = await self._connect()
                await made.execute(f'listen "{self._channel}"'.encode())
                self._connection = made
            return self._connection is not None

    async def wait(self, timeout: float, since: int) -> None:
        connection = self._connection
        if self.count != since:
            return
        if connection is None:
            await asyncio.sleep(min(timeout, POLL_SECONDS))
            return
        if self._leader_done is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(timeout, LISTEN_SECONDS)):
                    await self._leader_done.wait()
            return
        done = self._leader_done = asyncio.Event()
        try:
            found = connection.notifies(timeout=min(timeout, LISTEN_SECONDS))
            async with contextlib.aclosing(found):
                self.count += await anext(found, None) is not None
        except psycopg.Error:
            self._connection = None
            await connection.close()
        finally:
            self._leader_done = None
            done.set()

    async def close(self) -> None:
        self._closed = True
        while self._leader_done is not None:
            await self._leader_done.wait()
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    def drop(self) -> None:
        """Close the socket; the event loop in which to close properly is over."""
        if self._connection is not None:
            self._connection.pgconn.finish()
