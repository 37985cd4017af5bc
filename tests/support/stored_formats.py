"""The stores in tests/fixtures: what kinds there are, and how to open a copy of one."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import lzma
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg

import holdfast
from support import databases
from support.folders import FIXTURES

# The name says how a store is kept, and what is special about it.
KINDS = [
    "file.db.xz",
    "file-compressed.db.xz",
    "file-encrypted.db.xz",
    "file-owner-keys.db.xz",
    "folder.tar.xz",
    "archive.hfa.xz",
    "server.sql.xz",
    "server-compressed.sql.xz",
    "server-partitioned.sql.xz",
]
KEY = bytes(range(32))
OWNER_KEYS = "owner-keys.json"
EXPECTED = "expected.json"


def stored() -> list[str]:
    """All stores that were ever kept, as their folder and name."""
    folders = sorted(file.parent for file in FIXTURES.glob(f"*/{EXPECTED}"))
    return [f"{f.name}/{name}" for f in folders for name in sorted(_read(f)["stores"])]


def _read(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / EXPECTED).read_text())
    return found


class Expected:
    """What the version that wrote a store read from it."""

    def __init__(self, name: str) -> None:
        folder, _, file = name.partition("/")
        found = _read(FIXTURES / folder)
        self.content: dict[str, Any] = found["contents"][found["stores"][file]]
        self.changes: str = found["changes"][file]
        self.seal: str | None = found["seals"].get(file)


def is_archive(name: str) -> bool:
    return ".hfa" in name


def is_on_server(name: str) -> bool:
    return ".sql" in name


def options_of(name: str, folder: Path) -> dict[str, Any]:
    """With what a store of this name is opened; ``folder`` has the file of its keys."""
    options: dict[str, Any] = {}
    if "compressed" in name:
        options["compress"] = True
    if "encrypted" in name or "keys-form" in name:
        options["key"] = KEY
    if "owner-keys" in name:
        from holdfast.keys import OwnerKeyFile

        options["key"] = OwnerKeyFile(folder / OWNER_KEYS)
    return options


@contextlib.contextmanager
def copied(name: str, folder: Path, server: str = "") -> Iterator[str]:
    """The address of a copy of a store in ``folder``, or in a new database."""
    source = FIXTURES / name
    if (source.parent / OWNER_KEYS).exists():
        shutil.copy(source.parent / OWNER_KEYS, folder)
        (folder / OWNER_KEYS).chmod(0o600)
    if is_on_server(name):
        with databases.database(server) as url:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(unpacked(source).decode())
            yield url
        return
    if source.is_dir():
        shutil.copytree(source, folder / "store")
        yield f"dir:{folder / 'store'}"
        return
    content = unpacked(source)
    if ".tar" in name:
        with tarfile.open(fileobj=io.BytesIO(content)) as packed:
            packed.extractall(folder / "store", filter="data")
        yield f"dir:{folder / 'store'}"
        return
    place = folder / source.name.removesuffix(source.suffix)
    place.write_bytes(content)
    yield str(place)


def unpacked(file: Path) -> bytes:
    """The bytes of a store that is one file."""
    unpack = {".gz": gzip.decompress, ".xz": lzma.decompress}.get(file.suffix, bytes)
    return unpack(file.read_bytes())


@contextlib.contextmanager
def opened(name: str, address: str, folder: Path, **options: Any) -> Iterator[Any]:
    """The store at an address, or an archive imported into a new one."""
    options = options_of(name, folder) | options
    if not is_archive(name):
        with holdfast.open(address, **options) as store:
            yield store
        return
    place = folder / "imported.db"
    is_new = not place.exists()
    with holdfast.open(place) as store:
        if is_new:
            store.import_archive(address)
        yield store
