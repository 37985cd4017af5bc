"""From the address of a store to its backend."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple, cast

from holdfast._api.plugins import find_backend, open_damaged_sqlite
from holdfast._port import Backend
from holdfast.errors import HoldfastError, Unstorable

# A single letter is a Windows drive, not a scheme.
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+):(?://)?(.*)", re.DOTALL | re.IGNORECASE)
_POSTGRES = "postgresql"


def open_backend(
    url: object,
    *,
    native: bool = False,
    special: Mapping[str, object] = MappingProxyType({}),
    **options: object,
) -> Backend:
    """The backend that an address names: a path, ":memory:" or "scheme:rest".

    ``special`` are the options that only PostgreSQL has.
    """
    address = _address(url)
    scheme, rest = _parts(address)
    if special and scheme != _POSTGRES:
        text = f"is an option of PostgreSQL, and {address!r} is none"
        raise Unstorable(min(special), text)
    if scheme == "sqlite":
        rest = _sqlite_path(rest, make=not options.get("read_only"))
        return find_backend(scheme)(rest, **options)
    # Only a file has a log that can lose what was acknowledged.
    options = {n: v for n, v in options.items() if n != "accept_loss"}
    if scheme == "dir":
        return find_backend(scheme)(_folder(address.partition(":")[2]), **options)
    return find_backend(scheme, native=native)(address, **options, **special)


class StoreAddress(NamedTuple):
    """An address without its form: a path is absolute, other addresses are as given."""

    scheme: str
    name: str


def store_address(url: object) -> StoreAddress:
    """The scheme of an address and what it names."""
    address = _address(url)
    scheme, rest = _parts(address)
    if scheme == "dir":
        return StoreAddress(scheme, _absolute(address.partition(":")[2]))
    if scheme == "sqlite":
        return StoreAddress(scheme, rest if rest == ":memory:" else _absolute(rest))
    return StoreAddress(scheme, address)


def open_damaged_backend(url: object) -> Backend | None:
    """What can still be read of a damaged SQLite file, ``None`` if it is not one."""
    scheme, path = _parts(_address(url))
    return open_damaged_sqlite(_absolute(path)) if scheme == "sqlite" else None


def _parts(address: str) -> tuple[str, str]:
    """The scheme of an address and what follows it; a path belongs to SQLite."""
    match = _SCHEME.fullmatch(address)
    if match is None:
        return "sqlite", address
    scheme = match[1].lower()
    return _POSTGRES if scheme == "postgres" else scheme, match[2]


def _address(url: object) -> str:
    address: object = url
    if isinstance(url, os.PathLike):
        address = cast("os.PathLike[str]", url).__fspath__()
    if type(address) is not str or not address or "\0" in address:
        raise Unstorable("url", f"must be a path or an address, not {url!r}")
    return address


def _sqlite_path(path: str, *, make: bool) -> str:
    if path == ":memory:":
        return path
    path = _absolute(path)
    if make:
        _make_folder(os.path.dirname(path))
    return path


def _folder(path: str) -> str:
    if not path:
        raise Unstorable("url", "names no folder; write dir:path")
    return _absolute(path)


def _absolute(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path))


def _make_folder(folder: str) -> None:
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        text = f"{folder} cannot be made: {error.strerror}; choose another place"
        raise HoldfastError(text, code="cannot_open") from error
