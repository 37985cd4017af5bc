"""Named statements for one schema, and running them on a session."""

from __future__ import annotations

import contextlib
import re
from functools import cache
from typing import Any

import msgspec

from holdfast.backends._sql.rows import Row
from holdfast.backends._sql.statements import SHARED, NamedStatements
from holdfast.backends._sql.statements import text_of as text_in
from holdfast.backends.postgres._session import Session
from holdfast.errors import Unstorable

_SCHEMA = re.compile(r"\bhf\b")
# A colon, but not the two of a cast.
_PARAMETER = re.compile(r"(?<!:):(\w+)")
_IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]{0,40}")
_PACKAGE = __name__.rpartition(".")[0]


def checked_schema(schema: object) -> str:
    """A schema's name, checked: it needs no quotes and may hold our tables.

    Only the server knows the reserved words; it is asked when a store is opened.
    """
    if type(schema) is not str or not _IDENTIFIER.fullmatch(schema):
        text = "must be lower-case letters, digits and _, at most 41"
        raise Unstorable("schema", f"{schema!r} {text}")
    if schema == "information_schema" or schema.startswith("pg_"):
        raise Unstorable("schema", f"{schema!r} is PostgreSQL's own; name another")
    return schema


@cache
def statements(schema: str, file: str = "queries.sql") -> dict[str, bytes]:
    """All statements of a file by name."""
    found = NamedStatements(text_of(file), text_of("queries.sql") + text_of(SHARED))
    return {
        name: within(schema, _PARAMETER.sub(r"%(\1)s", sql))
        for name, sql in found.items()
    }


def text_of(file: str) -> str:
    """The text of a file of this package, or of the one with shared statements."""
    return text_in(file) if file == SHARED else text_in(file, _PACKAGE)


def within(schema: str, sql: str) -> bytes:
    """A statement for one schema."""
    return _SCHEMA.sub(schema, sql).encode()


class Statements(msgspec.Struct):
    """Runs statements by name on a session."""

    _session: Session
    _statements: dict[str, bytes]

    async def rows(self, name: str, /, **values: Any) -> list[Row]:
        """All rows of a named statement."""
        return await self._session.rows(self._statements[name], values)

    async def row(self, name: str, /, **values: Any) -> Row | None:
        """The first row of a named statement."""
        found = await self._session.rows(self._statements[name], values)
        return found[0] if found else None

    def transaction(self) -> contextlib.AbstractAsyncContextManager[None]:
        """Several statements, all or none."""
        return self._session.transaction()

    async def run(self, sql: str) -> None:
        """Run a statement without parameters or result."""
        await self._session.rows(sql.encode(), {})
