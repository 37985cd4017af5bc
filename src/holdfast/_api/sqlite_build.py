"""What the SQLite of this installation is."""

from __future__ import annotations

from importlib import import_module

import msgspec


class Build(msgspec.Struct, frozen=True):
    """Versions, and whether pages can carry checksums."""

    sqlite: str
    apsw: str
    page_checksums: bool


def sqlite_build() -> Build:
    """Asked of SQLite itself, which is loaded for it."""
    apsw = import_module("apsw")
    connecting = import_module("holdfast.backends.sqlite._connection")
    return Build(
        apsw.sqlite_lib_version(),
        apsw.apsw_version(),
        connecting.page_checksums() is not None,
    )
