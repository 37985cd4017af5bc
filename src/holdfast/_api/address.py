"""From the address of a store to its backend."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from holdfast._api.plugins import find_backend, open_damaged_sqlite
from holdfast._port import Backend
from holdfast._values.arguments import checked_path
from holdfast.errors import HoldfastError, Unstorable

# A single letter is a Windows drive, not a scheme.
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+):(?://)?(.*)", re.DOTALL | re.IGNORECASE)
_POSTGRES = "postgresql"
# Up to the last @: a password in which something is not encoded has to be hidden, too.
_PASSWORD = re.compile(r"(://[^/@:]*:).*(?=@)", re.DOTALL)
_OPTION = re.compile(r"(?<=[?&])([^=&]*)=([^&]*)")
# The other form of address that libpq knows. As a path it would be a file whose name
# has the password.
_KEYWORDS = re.compile(
    r"(\s*(host|hostaddr|port|dbname|user|password|service|sslmode)\s*=\s*"
    r"('(\\.|[^'])*'|[^\s']\S*))+\s*",
    re.DOTALL,
)


def open_backend(
    url: object,
    *,
    native: bool = False,
    special: Mapping[str, object] = MappingProxyType({}),
    make_folders: bool = False,
    **options: object,
) -> Backend:
    """The backend that an address names: a path, ":memory:" or "scheme:rest".

    ``special`` are the options that only PostgreSQL has. The folder of a file must
    exist, unless ``make_folders``.
    """
    address = _address(url)
    scheme, rest = _parts(address)
    if special and scheme != _POSTGRES:
        text = f"is an option of PostgreSQL, and {shown_address(address)!r} is none"
        raise Unstorable(min(special), text)
    if scheme == "sqlite":
        path = rest if rest == ":memory:" else _absolute(rest)
        if path != ":memory:" and not options.get("read_only"):
            _check_folder(path, make=make_folders)
        return find_backend(scheme)(path, **options)
    # Only a file has a log that can lose what was acknowledged.
    options = {n: v for n, v in options.items() if n != "accept_loss"}
    if scheme == "dir":
        path = _folder(address.partition(":")[2])
        if not options.get("read_only"):
            _check_folder(path, make=make_folders)
        return find_backend(scheme)(path, **options)
    return find_backend(scheme, native=native)(address, **options, **special)


def shown_address(url: object) -> str:
    """An address to be shown: a path as given, others without their password."""
    address = _address(url)
    if "://" not in address:
        return address
    return _OPTION.sub(_shown_option, _PASSWORD.sub(r"\1***", address))


def _shown_option(option: re.Match[str]) -> str:
    from urllib.parse import unquote  # noqa: PLC0415 - paths have no options

    name = unquote(option[1]).lower()
    is_secret = "password" in name or "secret" in name
    return f"{option[1]}=***" if is_secret else option[0]


class StoreAddress(msgspec.Struct, frozen=True):
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


def open_damaged_backend(url: object, *, is_cut_short: bool) -> Backend | None:
    """The readable rest of a damaged SQLite file, ``None`` if it is not one."""
    scheme, path = _parts(_address(url))
    if scheme != "sqlite":
        return None
    return open_damaged_sqlite(_absolute(path), is_cut_short=is_cut_short)


def _parts(address: str) -> tuple[str, str]:
    """The scheme of an address and what follows it; a path belongs to SQLite."""
    match = _SCHEME.fullmatch(address) if ":" in address else None
    if match is None:
        return "sqlite", address
    scheme = match[1].lower()
    return _POSTGRES if scheme == "postgres" else scheme, match[2]


def _address(url: object) -> str:
    # Errors do not show the address: it may have a password.
    address = checked_path(url, "url")
    try:
        address.encode()
    except UnicodeEncodeError:
        text = "must be valid Unicode; give the file another name"
        raise Unstorable("url", text) from None
    if "=" in address and _KEYWORDS.fullmatch(address):
        raise Unstorable(
            "url",
            "is a list of keywords; write postgresql://user@host/database?keyword=value",
        )
    return address


def _folder(path: str) -> str:
    if not path:
        raise Unstorable("url", "names no folder; write dir:path")
    return _absolute(path)


def _absolute(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path))


def _check_folder(path: str, *, make: bool) -> None:
    """Refuse a path whose folder does not exist: it may be misspelt."""
    folder = os.path.dirname(path)
    if os.path.isdir(folder):
        return
    if not make:
        text = f"{path} is in a folder that does not exist"
        hint = "make the folder, or open with make_folders=True"
        raise HoldfastError(f"{text}; {hint}", code="cannot_open")
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        text = f"{folder} cannot be made: {error.strerror}; choose another place"
        raise HoldfastError(text, code="cannot_open") from error
