"""From the address of a store to its backend."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from importlib import import_module
from typing import cast

from holdfast._backend import Backend
from holdfast.errors import HoldfastError, Unstorable, Unsupported

# A single letter is a Windows drive, not a scheme.
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+):(?://)?(.*)", re.DOTALL | re.IGNORECASE)
_BACKENDS = "holdfast.backends"


def open_backend(url: object, **options: object) -> Backend:
    """The backend an address names: a path, ":memory:" or "scheme:rest"."""
    address = _address(url)
    match = _SCHEME.fullmatch(address)
    if match is None or match[1].lower() == "sqlite":
        return _open_sqlite(match[2] if match else address, options)
    return _plugin(match[1].lower())(address, **options)


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
        f"there is no backend for {scheme!r} addresses; use a file path, sqlite:path or"
        f" :memory:, or install a package that offers one as a {_BACKENDS} entry point"
    )
