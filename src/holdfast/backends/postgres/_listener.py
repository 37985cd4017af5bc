"""Waiting until somebody says that there are changes, or for a while if nobody can.

One connection listens for all who wait, beside those of the pool: of several, one waits
for the server and wakes the others.
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

from holdfast.backends.postgres._driver import Sharing

# Between looks at the feed where nobody can tell us of changes, and where they can:
# then only those are left for which the connection broke.
UNTOLD_SECONDS, TOLD_SECONDS = 0.1, 0.5


class Ear(Protocol):
    """Something that hears of changes; ``count`` goes up with whatever is heard."""

    @property
    def count(self) -> int: ...

    async def listen(self) -> bool:
        """Hear from now on what `wait` waits for; whether we did not before."""
        ...

    async def wait(self, timeout: float, since: int) -> None:
        """Wait until more was heard than ``since``, but not longer, nor for long."""
        ...

    async def close(self) -> None:
        """Hear nothing any more."""
        ...


class BlockingSleep:
    """An ear that hears nothing."""

    count = 0

    async def listen(self) -> bool:
        return False

    async def wait(self, timeout: float, since: int) -> None:
        del since
        time.sleep(min(timeout, UNTOLD_SECONDS))

    async def close(self) -> None:
        """There is nothing to be closed."""


class NativeSleep(BlockingSleep):
    """As `BlockingSleep`, awaited."""

    async def wait(self, timeout: float, since: int) -> None:
        del since
        await asyncio.sleep(min(timeout, UNTOLD_SECONDS))


class BlockingEar:
    """A connection that listens, for threads."""

    def __init__(
        self, connect: Callable[[], Connection[Any]], channel: str, sharing: Sharing
    ) -> None:
        self._connect = connect
        self.count = 0
        self._channel = channel
        self._sharing = sharing
        self._changed = threading.Condition()
        self._is_led = False
        self._closed = False
        self._connection: Connection[Any] | None = None

    async def listen(self) -> bool:
        with self._changed:
            if self._connection is not None or self._sharing.yes or self._closed:
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
                self._changed.wait(min(timeout, UNTOLD_SECONDS))
                return
            if self._is_led:
                self._changed.wait(min(timeout, TOLD_SECONDS))
                return
            self._is_led = True
        try:
            found = connection.notifies(timeout=min(timeout, TOLD_SECONDS))
            with contextlib.closing(found):
                self.count += next(found, None) is not None
        except psycopg.Error:
            self._forget(connection)
        finally:
            with self._changed:
                self._is_led = False
                self._changed.notify_all()

    def _forget(self, connection: Connection[Any]) -> None:
        connection.close()
        with self._changed:
            if self._connection is connection:
                self._connection = None

    async def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: not self._is_led)
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


class NativeEar:
    """A connection that listens, for tasks."""

    def __init__(
        self,
        connect: Callable[[], Awaitable[AsyncConnection[Any]]],
        channel: str,
        sharing: Sharing,
    ) -> None:
        self._connect = connect
        self.count = 0
        self._channel = channel
        self._sharing = sharing
        self._opening: asyncio.Lock | None = None
        self._heard: asyncio.Event | None = None
        self._closed = False
        self._connection: AsyncConnection[Any] | None = None

    async def listen(self) -> bool:
        self._opening = self._opening or asyncio.Lock()
        async with self._opening:
            if self._connection is not None or self._sharing.yes or self._closed:
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
            await asyncio.sleep(min(timeout, UNTOLD_SECONDS))
            return
        if self._heard is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(timeout, TOLD_SECONDS)):
                    await self._heard.wait()
            return
        heard = self._heard = asyncio.Event()
        try:
            found = connection.notifies(timeout=min(timeout, TOLD_SECONDS))
            async with contextlib.aclosing(found):
                self.count += await anext(found, None) is not None
        except psycopg.Error:
            self._connection = None
            await connection.close()
        finally:
            self._heard = None
            heard.set()

    async def close(self) -> None:
        self._closed = True
        while self._heard is not None:
            await self._heard.wait()
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    def drop(self) -> None:
        """Hang up; the loop in which it could be closed is over."""
        if self._connection is not None:
            self._connection.pgconn.finish()
