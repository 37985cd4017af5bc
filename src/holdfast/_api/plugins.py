"""The leaves that the API loads by name, and the packages that add to them.

No other module of the library names a leaf. Each is imported when it is needed, so
``import holdfast`` loads no SQLite, no PostgreSQL driver and no importer.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import (
    TYPE_CHECKING,
    Any,
    Protocol,
    TypeAlias,
    TypedDict,
    Unpack,
    runtime_checkable,
)

import msgspec

from holdfast._engine.context import Context, Observer
from holdfast._port import Backend, Encrypted
from holdfast._values.caller_key import OwnerSecrets
from holdfast._values.keywords import refuse_unknown
from holdfast._values.os_errors import needing_room
from holdfast._values.records import Progress
from holdfast.errors import HoldfastError, MissingExtra, Unsupported

if TYPE_CHECKING:  # an import cycle, and a leaf
    from holdfast._api.address import StoreAddress
    from holdfast.importers import Report as Report  # noqa: PLC0414 - for the store

OpenBackend: TypeAlias = "Callable[..., Backend]"

ENTRY_POINTS = "holdfast.backends"
_BACKENDS = {
    "sqlite": "holdfast.backends.sqlite:SqliteBackend",
    "dir": "holdfast.backends.directory:open_directory",
    "postgresql": "holdfast.backends.postgres:open_blocking",
}
_NATIVE = {"postgresql": "holdfast.backends.postgres:open_native"}
_DAMAGED_SQLITE = "holdfast.backends.sqlite._damaged_file:find_wreck"
_PAGE_CHECKSUMS = "holdfast.backends.sqlite._connection:page_checksums"
_IMPORT = "holdfast.importers:import_into"
_TELEMETRY = "holdfast.telemetry._telemetry"
_KEYS = "holdfast.keys"
_ENCRYPTION = "holdfast.keys._layer"
_VIEWER = "holdfast.viewer"
_LANGGRAPH_IMPORT = "holdfast.adapters.langgraph._import:import_into"


def find_backend(scheme: str, *, native: bool = False) -> OpenBackend:
    """The function that opens a scheme; ``native`` prefers a backend to await."""
    name = (native and _NATIVE.get(scheme)) or _BACKENDS.get(scheme)
    if name is None:
        return _installed(scheme)
    try:
        backend: OpenBackend = _load(name)
    except ImportError as error:
        if scheme != "postgresql":
            raise
        raise missing_extra("PostgreSQL", "postgres") from error
    return backend


@runtime_checkable
class Telemetry(Protocol):
    """`holdfast.telemetry.Telemetry`, as the rest of the library sees it."""

    def observer(self, address: StoreAddress, schema: str) -> Observer:
        """The observer of the operations of one store."""
        ...


def find_telemetry(choice: bool | Telemetry | None) -> Telemetry | None:
    """The telemetry of a store; with ``None`` only if the program has a provider."""
    if not isinstance(choice, bool | None):
        return choice
    if choice is False or (choice is None and not _has_tracer_provider()):
        return None
    module = import_extra(_TELEMETRY, "telemetry", "otel")
    telemetry: Telemetry = module.default()
    return telemetry


def find_encryption() -> Callable[..., Encrypted]:
    """The layer that encrypts; `MissingExtra` if its extra is missing."""
    layer: Callable[..., Encrypted]
    layer = import_extra(_ENCRYPTION, "a key", "keys").EncryptionLayer
    return layer


def write_key_file(path: str, *, owners: bool = False) -> None:
    """Make a file with a new key, or one that has secrets of owners too."""
    keys = import_extra(_KEYS, "a key", "keys")
    keys.OwnerKeyFile.create(path) if owners else keys.write_key_file(path)


def find_owner_keys(path: str | os.PathLike[str]) -> OwnerSecrets:
    """A key file that has secrets of owners."""
    found: OwnerSecrets = import_extra(_KEYS, "a key", "keys").OwnerKeyFile(path)
    return found


def _has_tracer_provider() -> bool:
    # A program that has set a provider has imported this module: nothing has to be
    # imported, or even be installed, to ask.
    trace: Any = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return False
    nothing = (trace.ProxyTracerProvider, trace.NoOpTracerProvider)
    return not isinstance(trace.get_tracer_provider(), nothing)


def import_extra(module: str, what: str, extra: str) -> Any:
    """A module of an extra; `MissingExtra` if ``what`` needs it and it is missing."""
    try:
        with needing_room():
            return import_module(module)
    except ImportError as error:
        raise missing_extra(what, extra) from error


def missing_extra(what: str, extra: str) -> MissingExtra:
    return MissingExtra(f"{what} needs the extra: pip install 'holdfast[{extra}]'")


def _installed(scheme: str) -> OpenBackend:
    # Imported here: it takes long, and only backends of other packages need it.
    entry_points = import_module("importlib.metadata").entry_points
    for entry in entry_points(group=ENTRY_POINTS, name=scheme):
        backend: OpenBackend = entry.load()
        return backend
    raise Unsupported(
        f"there is no backend for {scheme!r} addresses; use a file path, dir:path or"
        f" :memory:, or install a package that offers one as a {ENTRY_POINTS} entry"
        " point"
    )


def open_damaged_sqlite(path: str, *, is_cut_short: bool) -> Backend | None:
    """The readable rest of a damaged SQLite file, ``None`` if it is not one."""
    find_wreck = _load(_DAMAGED_SQLITE)
    backend: Backend | None = find_wreck(path, is_cut_short=is_cut_short)
    return backend


class ImportOptions(TypedDict, total=False):
    """Options of `Store.import_from`."""

    format: str | None
    dry_run: bool
    progress: Progress | None


async def import_into(
    context: Context, path: str | os.PathLike[str], **options: Unpack[ImportOptions]
) -> Report:
    """Import a foreign file or folder."""
    refuse_unknown("an import", options, ImportOptions)
    report: Report = await _load(_IMPORT)(context, path, **options)
    return report


async def notebook_html(context: Context, thread: str) -> str | None:
    """A thread for a cell of a notebook; ``None`` without the extra, or if it fails."""
    try:
        viewer = import_module(_VIEWER)
        text: str = await viewer.notebook_html(context, thread)
    except (ImportError, HoldfastError):
        return None
    return text


async def import_from_langgraph(
    context: Context, path: str, *, dry_run: bool, progress: Progress | None
) -> Report:
    """Import the checkpoints of LangGraph's own savers; it needs LangGraph."""
    report: Report = await _load(_LANGGRAPH_IMPORT)(
        context, path, dry_run=dry_run, progress=progress
    )
    return report


class SqliteBuild(msgspec.Struct, frozen=True):
    """The SQLite of this installation, and whether its pages can carry checksums."""

    sqlite: str
    apsw: str
    page_checksums: bool


def sqlite_build() -> SqliteBuild:
    """Load SQLite and ask it."""
    apsw = import_module("apsw")
    return SqliteBuild(
        apsw.sqlite_lib_version(),
        apsw.apsw_version(),
        _load(_PAGE_CHECKSUMS)() is not None,
    )


def _load(name: str) -> Any:
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)
