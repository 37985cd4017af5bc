"""Where the store is, and opening it; a command line never makes one by accident."""

from __future__ import annotations

import os
import re

import holdfast
from holdfast._api.store import Store
from holdfast.cli._settings import Settings
from holdfast.errors import NotFound, Unsupported

VARIABLE = "HOLDFAST_STORE"
FOLDER = ".holdfast"
FILES = ("agents.db", "agent.db")
# A single letter is a drive.
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+):(?://)?", re.IGNORECASE)
_PASSWORD = re.compile(r"(://[^/@:]*:)[^@]*(?=@)|([?&]password=)[^&]*")
# "SQLite format 3", and the application id that our files have in their header.
_MAGIC, _OURS, _ID_AT, _HEADER = b"SQLite format 3\0", b"HOLD", 68, 100


def find_store(settings: Settings) -> str:
    """The address of the store: option, variable, ``.holdfast`` above, a file here."""
    given = settings.store or os.environ.get(VARIABLE)
    found = _address(given) if given else _above(os.getcwd()) or _here()
    if found is None:
        raise NotFound(
            f"there is no store here; name one with --store PATH or {VARIABLE}, or go"
            f" where a {FOLDER} folder or {FILES[0]} is",
            code="store_not_found",
        )
    return found


def without_password(address: str) -> str:
    """An address as it may be shown."""
    return _PASSWORD.sub(r"\1\2***", address)


def open_store(settings: Settings, *, write: bool) -> Store:
    """Open a store that exists, for reading only unless ``write``."""
    address = find_store(settings)
    if write and settings.read_only:
        raise Unsupported(
            "this command changes the store; leave --read-only out", code="read_only"
        )
    _must_exist(address)
    return holdfast.open(address, read_only=not write, busy_timeout=settings.wait)


def _must_exist(address: str) -> None:
    """Refuse to open, and thereby make, a file or folder that is not there."""
    scheme = _SCHEME.match(address)
    if scheme is not None and scheme[1] not in {"sqlite", "dir"}:
        return  # not here to be looked at
    path = address[scheme.end() :] if scheme else address
    if os.path.exists(os.path.expanduser(path)):
        return
    raise NotFound(
        f"there is no store at {path}; check --store and {VARIABLE}",
        code="store_not_found",
    )


def _address(given: str) -> str:
    is_folder = os.path.isdir(os.path.expanduser(given))
    return f"dir:{given}" if is_folder else given


def _above(folder: str) -> str | None:
    while True:
        found = os.path.join(folder, FOLDER)
        if os.path.isdir(found):
            file = os.path.join(found, FILES[0])
            return file if os.path.exists(file) else f"dir:{found}"
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above


def _here() -> str | None:
    return next(filter(_is_ours, FILES), None)


def _is_ours(path: str) -> bool:
    # Before the store is opened: SQLite's locks do not survive another descriptor.
    try:
        with open(path, "rb") as file:
            header = file.read(_HEADER)
    except OSError:
        return False
    at_id = header[_ID_AT : _ID_AT + len(_OURS)]
    return header.startswith(_MAGIC) and at_id == _OURS
