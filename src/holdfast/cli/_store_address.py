"""Finding and opening the store; a command never creates one by accident."""

from __future__ import annotations

import os
import re

import holdfast
from holdfast._api.address import store_address
from holdfast._api.store import Store
from holdfast._values.store_files import HEADER, LOCK, STORE_OF_FILES, is_database
from holdfast.cli._given_key import given_key
from holdfast.cli._shared_options import SharedOptions
from holdfast.errors import NotFound, Unsupported

VARIABLE = "HOLDFAST_STORE"
SCOPE = "HOLDFAST_SCOPE"
FOLDER = ".holdfast"
FILES = ("agents.db", "agent.db")
# A single letter is a drive.
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+):(?://)?", re.IGNORECASE)


def find_store(options: SharedOptions) -> str:
    """The address of the store: option, variable, ``.holdfast`` above, a file here."""
    given = options.store or os.environ.get(VARIABLE)
    found = (
        _address(given)
        if given
        else _above(os.getcwd()) or next(filter(_is_ours, FILES), None)
    )
    if found is None:
        raise NotFound(
            f"there is no store here; name one with --store PATH or {VARIABLE}, or"
            f" change to a folder with {FOLDER} or {FILES[0]}",
            code="store_not_found",
        )
    return found


def given_scope(options: SharedOptions) -> str | None:
    """The scope that was asked for: option or variable."""
    return options.scope or os.environ.get(SCOPE) or None


def open_store(
    options: SharedOptions, *, write: bool, accept_loss: bool = False
) -> Store:
    """Open a store that exists, for reading only unless ``write``."""
    address = find_store(options)
    if write and options.read_only:
        raise Unsupported(
            "this command changes the store; leave --read-only out", code="read_only"
        )
    must_exist(address)
    return holdfast.open(
        address,
        read_only=not write,
        busy_timeout=options.wait,
        accept_loss=accept_loss,
        key=given_key(),
        scope=given_scope(options),
    )


def must_exist(address: str) -> None:
    """Raise unless the file or folder exists: opening it would create it."""
    scheme = _SCHEME.match(address) if ":" in address else None
    if scheme is not None and scheme[1] not in {"sqlite", "dir"}:
        return  # a server, which cannot be looked at here
    path = address[scheme.end() :] if scheme else address
    if os.path.exists(os.path.expanduser(path)):
        return
    raise NotFound(
        f"there is no store at {path}; check --store and {VARIABLE}",
        code="store_not_found",
    )


def _address(given: str) -> str:
    is_folder = os.path.isdir(os.path.expanduser(given))
    if is_folder:
        return f"dir:{given}"
    store_address(given)  # a list of keywords is no path
    return given


def _above(folder: str) -> str | None:
    while True:
        found = os.path.join(folder, FOLDER)
        file = os.path.join(found, FILES[0])
        if os.path.exists(file):
            return file
        # A workspace has a folder of this name too, with its index and no store.
        if os.path.exists(os.path.join(found, STORE_OF_FILES)):
            return f"dir:{found}"
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above


def _is_ours(path: str) -> bool:
    # Read before the store is opened: closing another descriptor of the same file
    # drops SQLite's locks.
    try:
        with open(path, "rb") as file:
            header = file.read(HEADER)
    except OSError:
        return False
    return is_database(header, has_lock=os.path.exists(path + LOCK))
