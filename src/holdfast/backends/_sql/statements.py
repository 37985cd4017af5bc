"""Named statements from ``.sql`` files, with the columns of tables filled in.

In the files parameters are written ``:name``, and ``hf.`` stands before every table of
a statement that both dialects use. ``{thread}`` is the list of a table's columns,
``{t.thread}`` the same with an alias, ``{:thread}`` a parameter for each column and
``{?thread}`` a positional one.
"""

from __future__ import annotations

import re
from importlib import resources

from holdfast.backends._sql.rows import COLUMNS

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
_COMMENT = re.compile(r"^\s*--.*\n", re.MULTILINE)
_MARKER = re.compile(r"\{([:?]?)(\w+\.)?(\w+)\}")
SHARED = "shared.sql"
PACKAGE = __name__.rpartition(".")[0]


def named_statements(text: str) -> dict[str, str]:
    """Every ``-- name:`` block of a file's text, by its name."""
    _, *blocks = _NAME.split(text)
    pairs = zip(blocks[::2], blocks[1::2], strict=True)
    return {
        name: _MARKER.sub(_columns, _COMMENT.sub("", sql)).strip()
        for name, sql in pairs
    }


def text_of(file: str, package: str = PACKAGE) -> str:
    """The text of a file of a package."""
    return resources.files(package).joinpath(file).read_text("utf-8")


def _columns(marker: re.Match[str]) -> str:
    kind, alias, table = marker.groups()
    names = COLUMNS[table]
    if kind == "?":
        return ", ".join("?" * len(names))
    return ", ".join(f"{kind or alias or ''}{name}" for name in names)
