"""Sessions on PostgreSQL: blocking and native async connections behind one protocol.

The backend is written once, as coroutines over a `Session`. The coroutines of a
blocking session never suspend.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Mapping
from typing import Any, Protocol

import psycopg
from psycopg import AsyncConnection, AsyncCursor, Connection, Cursor
from psycopg.abc import AdaptContext
from psycopg.rows import tuple_row
from psycopg.types.array import ListBinaryDumper
from psycopg.types.numeric import Int8BinaryDumper
from psycopg_pool import ConnectionPool

from holdfast.backends._sql.rows import Row
from holdfast.backends.postgres._errors import translate, translated
from holdfast.backends.postgres._server import Pooler


class Session(Protocol):
    """A connection on which statements can be run."""

    async def rows(self, statement: bytes, values: Mapping[str, Any]) -> list[Row]:
        """All rows of a statement."""
        ...

    def transaction(self) -> contextlib.AbstractAsyncContextManager[None]:
        """Several statements, all or none; a savepoint inside a transaction."""
        ...

    async def begin(self) -> None:
        """Begin a transaction, unless the connection commits every statement."""
        ...

    @property
    def process(self) -> int:
        """The server's process that the connection reports."""
        ...

    async def close(self) -> None:
        """Close the connection; for sessions that are not given back."""
        ...


class BlockingSession:
    """A psycopg connection whose coroutines never suspend."""

    # The pool that the connection goes back to, if it is from one.
    lender: ConnectionPool[Any] | None = None

    def __init__(
        self,
        connection: Connection[Any],
        pooler: Pooler | None = None,
    ) -> None:
        self.connection = connection
        self._pooler = pooler

    async def rows(self, statement: bytes, values: Mapping[str, Any]) -> list[Row]:
        try:
            cursor = Cursor(self.connection, row_factory=tuple_row)
            if self._pooler is None:
                register_types(cursor)
            cursor.execute(
                statement, values or None, prepare=_prepare(self._pooler), binary=True
            )
            return [] if cursor.rownumber is None else cursor.fetchall()
        except psycopg.Error as error:
            translate(error, self.connection, self._pooler)
            raise

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncGenerator[None]:
        with translated(self.connection, self._pooler), self.connection.transaction():
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
        self,
        connection: AsyncConnection[Any],
        pooler: Pooler | None = None,
    ) -> None:
        self.connection = connection
        self._pooler = pooler

    async def rows(self, statement: bytes, values: Mapping[str, Any]) -> list[Row]:
        try:
            cursor = AsyncCursor(self.connection, row_factory=tuple_row)
            if self._pooler is None:
                register_types(cursor)
            await cursor.execute(
                statement, values or None, prepare=_prepare(self._pooler), binary=True
            )
            return [] if cursor.rownumber is None else await cursor.fetchall()
        except psycopg.Error as error:
            translate(error, self.connection, self._pooler)
            raise

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncGenerator[None]:
        with translated(self.connection, self._pooler):
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


def _prepare(pooler: Pooler | None) -> bool | None:
    """Never prepare behind a pooler; otherwise leave it to the driver (``None``)."""
    return False if pooler is not None and pooler.in_use else None


def register_types(context: AdaptContext) -> None:
    """Let a connection or cursor send lists as binary arrays, integers as one type.

    Otherwise a statement would be prepared again for every size of its integers.
    """
    context.adapters.register_dumper(int, Int8BinaryDumper)
    context.adapters.register_dumper(list, ListBinaryDumper)
