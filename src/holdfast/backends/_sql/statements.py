"""Named statements from ``.sql`` files, with the columns of tables filled in.

In the files parameters are written ``:name``, and ``hf.`` stands before every table of
a statement that both dialects use. ``{thread}`` is the list of a table's columns,
``{t.thread}`` the same with an alias, ``{:thread}`` a parameter for each column and
``{?thread}`` a positional one. ``{=listed}`` is the text of a ``-- part: listed`` of
the same file, or of the dialect's.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.backends._sql.rows import COLUMNS

_COMMENT = "-- "
_MARKER = re.compile(r"\{([:?]?)(\w+\.)?(\w+)\}")
_PART = re.compile(r"\{=(\w+)\}")
SHARED = "shared.sql"
PACKAGE = __name__.rpartition(".")[0]


class NamedStatements(Mapping[str, str]):
    """Every ``-- name:`` block of a file's text, assembled when it is first used.

    ``dialect`` is the text of a file that has more parts.
    """

    def __init__(self, text: str, dialect: str = "") -> None:
        blocks = _blocks(text)
        self._parts = _blocks(dialect)["part"] | blocks["part"]
        self._texts = blocks["name"]
        self._assembled: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        try:
            return self._assembled[name]
        except KeyError:
            sql = _assembled(self._texts[name], self._parts)
            self._assembled[name] = found = _MARKER.sub(_columns, sql)
            return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


def _blocks(text: str) -> dict[str, dict[str, str]]:
    """The texts by kind and name, without comments."""
    # A pattern would take five times as long, in every command.
    found: dict[str, dict[str, str]] = {"name": {}, "part": {}}
    block, name = found["name"], ""
    for piece in f"\n{text}".split(f"\n{_COMMENT}"):
        comment, _, sql = piece.partition("\n")
        kind, _, named = comment.partition(": ")
        if kind in found:
            block, name = found[kind], named
            block[name] = sql
        elif name:
            block[name] += f"\n{sql}"
    return found


def _assembled(sql: str, parts: dict[str, str]) -> str:
    """A statement with the texts of its parts, and of the parts of these."""
    while "{=" in sql:
        sql = _PART.sub(lambda marker: f"({_assembled(parts[marker[1]], parts)})", sql)
    return sql.strip()


def text_of(file: str, package: str = PACKAGE) -> str:
    """The text of a file of a package."""
    # importlib.resources takes longer to load than all statements to read.
    module = sys.modules[package]
    loader: Any = module.__loader__
    path = os.path.join(os.path.dirname(module.__file__ or ""), file)
    return str(loader.get_data(path), "utf-8")


def _columns(marker: re.Match[str]) -> str:
    kind, alias, table = marker.groups()
    names = COLUMNS[table]
    if kind == "?":
        return ", ".join("?" * len(names))
    return ", ".join(f"{kind or alias or ''}{name}" for name in names)
