"""Named statements for one schema, in the form that psycopg takes."""

from __future__ import annotations

import re
from functools import cache

from holdfast.backends._sql.statements import SHARED, named_statements
from holdfast.backends._sql.statements import text_of as text_in
from holdfast.errors import Unstorable

_SCHEMA = re.compile(r"\bhf\b")
# A colon, but not the two of a cast.
_PARAMETER = re.compile(r"(?<!:):(\w+)")
_IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]{0,40}")
_PACKAGE = __name__.rpartition(".")[0]


def checked_schema(schema: object) -> str:
    """A schema's name that needs no quotes anywhere."""
    if type(schema) is not str or not _IDENTIFIER.fullmatch(schema):
        text = "must be lower-case letters, digits and _, at most 41"
        raise Unstorable("schema", f"{schema!r} {text}")
    return schema


@cache
def statements(schema: str, file: str = "queries.sql") -> dict[str, bytes]:
    """All statements of a file by name."""
    found = named_statements(text_of(file))
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
