"""The named statements of the ``.sql`` files, and running them on a connection."""

from __future__ import annotations

from typing import Any

import apsw

from holdfast.backends._sql.rows import Row
from holdfast.backends._sql.statements import SHARED, NamedStatements, text_of

_PACKAGE = __name__.rpartition(".")[0]


def load_queries(file: str, package: str = _PACKAGE) -> NamedStatements:
    """Every statement of a package's file, by its name."""
    return NamedStatements(text_of(file, package))


# Schemas are PostgreSQL's.
QUERIES = NamedStatements(
    text_of(SHARED).replace("hf.", "") + text_of("queries.sql", _PACKAGE)
)


def rows(db: apsw.Connection | apsw.Cursor, query: str, /, **values: Any) -> list[Row]:
    """All rows of a named statement; never leaves a cursor open."""
    return db.execute(QUERIES[query], values).fetchall()


def row(db: apsw.Connection | apsw.Cursor, query: str, /, **values: Any) -> Row | None:
    """The first row of a named statement."""
    found = rows(db, query, **values)
    return found[0] if found else None
