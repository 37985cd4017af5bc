"""The result of the last scan: the next one reads only files that may have changed.

The index is a cache. A missing, damaged or foreign one costs the time to read all files
again. It is thrown away after a restart of the machine: a power cut can leave a file
with the times of its last change and without the content.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import msgspec
import xxhash

from holdfast._values.files import FileEntry, Omitted, Tree, wrong_path
from holdfast._values.typed import prepare

T = TypeVar("T")

# Raised whenever an older index could be taken for what it is not: the first version
# took stores for files, the second had stamps and files together.
_MAGIC = b"holdfast index 3\n"
_BOOT = "/proc/sys/kernel/random/boot_id"
# Times of the last change of content and of the inode, size, inode number, mode.
Stamp = tuple[int, int, int, int, int]


class Folder(msgspec.Struct, array_like=True):
    """A folder of the index; ``ignored`` says for each name whether it is a folder.

    A file without a stamp has to be read again. The stamps are apart, because a quiet
    scan needs nothing else: it waits for memory as long as it compares.
    """

    files: dict[str, FileEntry] = {}
    stamps: dict[str, Stamp] = {}
    folders: dict[str, Folder] = {}
    ignored: dict[str, bool] = {}
    rules: bytes = b""  # the key of the rules that decided
    rule_files: dict[str, tuple[str, ...]] = {}  # the rules that stand in it, by file
    entry: FileEntry | None = None  # of the folder itself, if it is one of the tree

    def entries(self) -> Iterator[FileEntry]:
        """All files of the tree in this folder and below."""
        if self.entry is not None:
            yield self.entry
        yield from self.files.values()
        for folder in self.folders.values():
            yield from folder.entries()


class Index(msgspec.Struct, array_like=True):
    """The folder at the last scan."""

    top: Folder
    omitted: tuple[Omitted, ...] = ()
    rules: tuple[str, ...] = ()
    book: bytes = b""  # the key of the rules of the program
    boot: str = ""

    def tree(self) -> Tree:
        """The files as a value."""
        entries = {entry.path: entry for entry in self.top.entries()}
        return Tree(entries=entries, rules=self.rules, omitted=self.omitted)


def encode(index: Index) -> bytes:
    """An index as the bytes of a file."""
    index.boot = _boot()
    # Files whose names are not UTF-8 are read again.
    storable = msgspec.structs.replace(index, top=_without_odd_names(index.top))
    payload = msgspec.msgpack.encode(storable)
    return _MAGIC + xxhash.xxh3_128_digest(payload) + payload


def decode(data: bytes, book: bytes) -> Index | None:
    """The index in a file, ``None`` if it cannot be used."""
    start = len(_MAGIC) + 16
    payload = data[start:]
    if data[:start] != _MAGIC + xxhash.xxh3_128_digest(payload):
        return None
    try:
        index = msgspec.msgpack.decode(payload, type=Index)
    except (ValueError, RecursionError):
        return None
    if (index.boot, index.book) != (_boot(), book):
        return None
    return None if wrong_path([each.path for each in index.top.entries()]) else index


def _boot() -> str:
    try:
        with open(_BOOT, encoding="ascii") as file:
            return file.read().strip()
    except OSError:  # not Linux: there the index outlives a restart
        return ""


def _without_odd_names(folder: Folder) -> Folder:
    below = {
        name: _without_odd_names(each)
        for name, each in folder.folders.items()
        if _is_utf8(name)
    }
    return msgspec.structs.replace(
        folder,
        files=_with_utf8(folder.files),
        stamps=_with_utf8(folder.stamps),
        folders=below,
        ignored=_with_utf8(folder.ignored),
    )


def _with_utf8(named: dict[str, T]) -> dict[str, T]:
    if all(map(_is_utf8, named)):
        return named
    return {name: each for name, each in named.items() if _is_utf8(name)}


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


prepare(Index)
