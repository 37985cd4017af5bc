"""The named statements of the ``.sql`` files."""

from __future__ import annotations

import re
from importlib import resources

_HEADER = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
_PACKAGE = __name__.rpartition(".")[0]


def load_queries(file: str, package: str = _PACKAGE) -> dict[str, str]:
    """Every ``-- name:`` block of a package's file, by its name."""
    text = resources.files(package).joinpath(file).read_text("utf-8")
    _, *blocks = _HEADER.split(text)
    return {
        name: sql.strip() for name, sql in zip(blocks[::2], blocks[1::2], strict=True)
    }


QUERIES = load_queries("queries.sql")
