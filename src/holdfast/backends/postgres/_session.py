"""Named statements on a session."""

from __future__ import annotations

import contextlib
from typing import Any

from holdfast.backends.postgres._driver import Row, Session


class Statements:
    """A session that is told the names of statements."""

    def __init__(self, session: Session, statements: dict[str, bytes]) -> None:
        self._session = session
        self._statements = statements

    async def rows(self, name: str, /, **values: Any) -> list[Row]:
        """All rows of a named statement."""
        return await self._session.rows(self._statements[name], values)

    async def row(self, name: str, /, **values: Any) -> Row | None:
        """The first row of a named statement."""
        found = await self.rows(name, **values)
        return found[0] if found else None

    def transaction(self) -> contextlib.AbstractAsyncContextManager[None]:
        """Several statements, all or none."""
        return self._session.transaction()

    async def run(self, sql: str) -> None:
        """A statement without parameters or result."""
        await self._session.rows(sql.encode(), {})
