"""From the address of a store to its backend."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import cast

from holdfast._port import Backend
from holdfast.errors import HoldfastError, Unstorable, Unsupported

# A single letter is a Windows drive, not a scheme.
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+):(?://)?(.*)", re.DOTALL | re.IGNORECASE)
_BACKENDS = "holdfast.backends"
POSTGRES = ("postgresql", "postgres")


def open_backend(
    url: object,
    *,
    native: bool = False,
    special: Mapping[str, object] = MappingProxyType({}),
    **options: object,
) -> Backend:
    """The backend an address names: a path, ":memory:" or "scheme:rest".

    ``special`` are options that not every backend has.
    """
    address = _address(url)
    match = _SCHEME.fullmatch(address)
    scheme = match[1].lower() if match else "sqlite"
    if scheme in POSTGRES:
        return _open_postgres(address, native=native, options={**options, **special})
    if special:
        text = f"is an option of PostgreSQL, and {address!r} is none"
        raise Unstorable(min(special), text)
    if scheme == "sqlite":
        return _open_sqlite(match[2] if match else address, options)
    if scheme == "dir":
        return _open_directory(address.partition(":")[2], options)
    return _plugin(scheme)(address, **options)


def open_wreck(url: object) -> Backend | None:
    """What can still be read of a damaged SQLite file, ``None`` if it is none."""
    address = _address(url)
    match = _SCHEME.fullmatch(address)
    if match is not None and match[1].lower() != "sqlite":
        return None
    path = os.path.abspath(os.path.expanduser(match[2] if match else address))
    find = import_module("holdfast.backends.sqlite._damaged_file").find_wreck
    found: Backend | None = find(path)
    return found


def _open_postgres(
    address: str, *, native: bool, options: dict[str, object]
) -> Backend:
    try:
        postgres = import_module("holdfast.backends.postgres")
    except ImportError as error:
        raise Unsupported(
            "PostgreSQL needs the extra: pip install 'holdfast[postgres]'",
            code="missing_extra",
        ) from error
    make = postgres.open_native if native else postgres.open_blocking
    opened: Backend = make(address, **options)
    return opened


def _address(url: object) -> str:
    address: object = url
    if isinstance(url, os.PathLike):
        address = cast("os.PathLike[str]", url).__fspath__()
    if type(address) is not str or not address or "\0" in address:
        raise Unstorable("url", f"must be a path or an address, not {url!r}")
    return address


def _open_sqlite(path: str, options: dict[str, object]) -> Backend:
    # Imported here so that `import holdfast` does not load SQLite.
    backend = import_module("holdfast.backends.sqlite").SqliteBackend
    if path != ":memory:":
        path = os.path.abspath(os.path.expanduser(path))
        if not options.get("read_only"):
            _make_folder(os.path.dirname(path))
    opened: Backend = backend(path, **options)
    return opened


def _open_directory(path: str, options: dict[str, object]) -> Backend:
    if not path:
        raise Unstorable("url", "names no folder; write dir:path")
    make = import_module("holdfast.backends.directory").open_directory
    opened: Backend = make(os.path.abspath(os.path.expanduser(path)), **options)
    return opened


def _make_folder(folder: str) -> None:
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        text = f"{folder} cannot be made: {error.strerror}; choose another place"
        raise HoldfastError(text, code="cannot_open") from error


def _plugin(scheme: str) -> Callable[..., Backend]:
    # Imported here: it would be a fifth of the time of `import holdfast`.
    entry_points = import_module("importlib.metadata").entry_points
    for entry in entry_points(group=_BACKENDS, name=scheme):
        backend: Callable[..., Backend] = entry.load()
        return backend
    raise Unsupported(
        f"there is no backend for {scheme!r} addresses; use a file path, dir:path or"
        f" :memory:, or install a package that offers one as a {_BACKENDS} entry point"
    )
