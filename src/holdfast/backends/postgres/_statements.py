"""Named statements from the `.sql` files beside this, for one schema."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from holdfast.errors import Unstorable

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
_COMMENT = re.compile(r"^\s*--.*\n", re.MULTILINE)
_SCHEMA = re.compile(r"\bhf\b")
_IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]{0,40}")


def checked_schema(schema: object) -> str:
    """A schema's name that needs no quotes anywhere."""
    if type(schema) is not str or not _IDENTIFIER.fullmatch(schema):
        text = "must be lower-case letters, digits and _, at most 41"
        raise Unstorable("schema", f"{schema!r} {text}")
    return schema


@cache
def statements(schema: str, file: str = "queries.sql") -> dict[str, bytes]:
    """All statements of a file by name."""
    parts = _NAME.split(text_of(file))[1:]
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return {name: within(schema, _COMMENT.sub("", sql).strip()) for name, sql in pairs}


def text_of(file: str) -> str:
    """A file beside this one."""
    return files(__package__).joinpath(file).read_text()


def within(schema: str, sql: str) -> bytes:
    """A statement for one schema."""
    return _SCHEMA.sub(schema, sql).encode()
