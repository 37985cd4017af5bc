"""The files of a folder at one moment, as values: the tree, and how two trees differ.

Nothing here reads a folder or a store. Paths are bytes, because a file system takes
names that are not UTF-8; ``os.fsdecode`` makes the text that callers see.
"""

from __future__ import annotations

import os
import re
import stat
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import compress
from operator import is_not
from typing import Annotated, Protocol, cast, runtime_checkable

import msgspec
from msgspec import Meta

# The bits of st_mode that a tree keeps: the kind of file, and the permissions.
KEPT_MODE = 0o170777
HIGHEST_MODE = 0o177777


class FileEntry(msgspec.Struct, frozen=True, gc=False):
    """A file of a tree: a regular file, a symbolic link, or an empty directory."""

    path: bytes  # relative; "/" between the parts
    mode: Annotated[int, Meta(ge=0, le=HIGHEST_MODE)]  # st_mode & KEPT_MODE
    size: Annotated[int, Meta(ge=0)]
    digest: bytes  # SHA-256 of the content; of the target for a symbolic link

    @property
    def name(self) -> str:
        """The path as text, as Python writes it."""
        return os.fsdecode(self.path)

    @property
    def is_link(self) -> bool:
        """True for a symbolic link; its content is the target."""
        return stat.S_ISLNK(self.mode)

    @property
    def is_directory(self) -> bool:
        """True for an empty directory; it has no content."""
        return stat.S_ISDIR(self.mode)


class Omitted(msgspec.Struct, frozen=True, gc=False):
    """A file that a snapshot left out, and why: "too large", "socket", "vanished"."""

    path: bytes
    reason: str


class Tree(msgspec.Struct, frozen=True):
    """The files of a snapshot by path, the rules in force, and what was left out."""

    entries: dict[bytes, FileEntry] = {}
    rules: tuple[str, ...] = ()
    omitted: tuple[Omitted, ...] = ()

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[str]:
        """The paths in order, as text."""
        return map(os.fsdecode, sorted(self.entries))

    def __contains__(self, path: object) -> bool:
        """True if it has a file at a path."""
        if not isinstance(path, str | bytes | os.PathLike):
            return False
        return os.fsencode(cast("str", path)) in self.entries

    def __getitem__(self, path: str | bytes | os.PathLike[str]) -> FileEntry:
        return self.entries[os.fsencode(path)]


class TreeChanges(msgspec.Struct, frozen=True):
    """The paths in which two trees differ, each in order."""

    added: tuple[bytes, ...] = ()
    removed: tuple[bytes, ...] = ()
    changed: tuple[bytes, ...] = ()  # the content, or the kind of file
    mode_changed: tuple[bytes, ...] = ()  # the permission bits alone

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed or self.mode_changed)


@runtime_checkable
class Snapshot(Protocol):
    """The input of a save: the files of a folder at one moment, and their contents."""

    @property
    def tree(self) -> Tree:
        """The files, and what was left out."""
        ...

    def content(self, path: bytes) -> Iterator[bytes]:
        """The bytes whose SHA-256 is the entry's digest, in pieces.

        Raises `Conflict` if the file is not the one of the tree any more.
        """
        ...


def compare(old: Tree, new: Tree) -> TreeChanges:
    """The changes that make the files of ``new`` out of those of ``old``."""
    found, gone = differences(old.entries, new.entries)
    added = [path for path in found if path not in old.entries]
    pairs = [(p, old.entries[p], new.entries[p]) for p in sorted(found - set(added))]
    other = [
        path for path, before, after in pairs if _content(before) != _content(after)
    ]
    kept = set(other)
    return TreeChanges(
        added=tuple(sorted(added)),
        removed=tuple(sorted(gone)),
        changed=tuple(other),
        mode_changed=tuple(
            path
            for path, before, after in pairs
            if path not in kept and before.mode != after.mode
        ),
    )


# --- paths ----------------------------------------------------------------------------

# A folder of this name holds the data of a workspace itself, so it is never part of a
# tree.
OWN_FOLDER = ".holdfast"
# A scan goes 200 folders deep, and file systems take names of 255 bytes.
LONGEST_PATH, MOST_PARTS = (1 << 16) - 1, 256
# Characters that macOS ignores in a name.
_UNSEEN = re.compile(rb"\xe2\x80[\x8c-\x8f\xaa-\xae]|\xe2\x81[\xaa-\xaf]|\xef\xbb\xbf")


def wrong_path(paths: Sequence[bytes]) -> str | None:
    """The problem of the first invalid path, ``None`` if each leads to a file below.

    No list, even a forged one, may write outside of the folder that it is written to,
    or into a workspace's own data there.
    """
    if not paths:
        return None
    together = b"/" + b"/\0/".join(paths) + b"/"
    is_sound = (
        together.count(b"\0") == len(paths) - 1
        and not any(part in together for part in (b"//", b"/./", b"/../"))
        and b"/.holdfast/" not in as_seen(together)
        # A path of too many parts is longer.
        and max(map(len, paths)) < 2 * MOST_PARTS
    )
    # Checking all paths at once takes a twentieth of the time.
    return None if is_sound else next(filter(None, map(_wrong, paths)), None)


def _wrong(path: bytes) -> str | None:
    parts = path.split(b"/")
    name = repr(os.fsdecode(path[:200]))
    if b"\0" in path or not {b"", b".", b".."}.isdisjoint(parts):
        return f"the path {name} is absolute, or has an empty part, '.', '..' or a NUL"
    if len(path) > LONGEST_PATH or len(parts) > MOST_PARTS:
        return f"the path {name}… is too long or too deep"
    if OWN_FOLDER.encode() in map(as_seen, parts):
        return f"the path {name} is in a folder that a workspace keeps for itself"
    return None


def as_seen(path: bytes) -> bytes:
    """A path as a file system reads it that ignores the case of letters.

    Two such paths can be one file on macOS, and on Linux where a folder is set so.
    """
    if b"\xe2" in path or b"\xef" in path:
        path = _UNSEEN.sub(b"", path)
    return path.lower()


def parents(path: bytes) -> Iterator[bytes]:
    """The folders that a path is in, the nearest first."""
    while (cut := path.rfind(b"/")) > 0:
        path = path[:cut]
        yield path


class _HasMode(Protocol):
    @property
    def mode(self) -> int: ...


def inside_of_file(
    entries: Mapping[bytes, _HasMode], paths: Collection[bytes]
) -> bytes | None:
    """A path that is below a file or a link, ``None`` if no path is.

    ``paths`` are the new ones; the others were checked before.
    """
    for folder in {path.rpartition(b"/")[0] for path in paths}:
        for place in (folder, *parents(folder)):
            found = entries.get(place)
            if found is not None and not stat.S_ISDIR(found.mode):
                return place
    if len(paths) == len(entries):
        return None
    ordered = sorted(entries)
    for path in paths:
        [*below] = ordered[bisect_left(ordered, path + b"/") :][:1]
        is_folder = any(each.startswith(path + b"/") for each in below)
        if is_folder and not stat.S_ISDIR(entries[path].mode):
            return path
    return None


Entries = Mapping[bytes, FileEntry]
# The number of files that are compared at once.
_BLOCK = 256


def differences(old: Entries, new: Entries) -> tuple[set[bytes], set[bytes]]:
    """The paths at which ``new`` has another file, and those at which it has none."""
    found = {entry.path for entry in changed(old, new)}
    return found, missing(old, new, found)


def missing(old: Collection[bytes], new: Entries, found: Iterable[bytes]) -> set[bytes]:
    added = sum(path not in old for path in found)
    # To make a set of all paths takes longer than to compare all files.
    return set(old) - new.keys() if len(old) + added != len(new) else set()


def changed(old: Entries, new: Entries) -> list[FileEntry]:
    """The files of ``new`` that ``old`` does not have, or has with other contents.

    Mostly few differ and the others are the same objects in the same order, as a scan
    gives them: then Python runs no code for each file.
    """
    found = _changed_in_place(list(old.values()), list(new.values()))
    if found is not None:
        return found
    other = compress(new.values(), map(is_not, map(old.get, new), new.values()))
    return [entry for entry in other if old.get(entry.path) != entry]


def _changed_in_place(
    old: list[FileEntry], new: list[FileEntry]
) -> list[FileEntry] | None:
    """The files that differ at the same paths, ``None`` if the paths differ."""
    found: list[FileEntry] = []
    if old == new or len(old) != len(new):
        return found if len(old) == len(new) else None
    for start in range(0, len(new), _BLOCK):
        block = slice(start, start + _BLOCK)
        if old[block] != new[block]:
            for one, other in zip(old[block], new[block], strict=True):
                if one.path != other.path:
                    return None
                if one != other:
                    found.append(other)
    return found


def _content(entry: FileEntry) -> tuple[int, bytes]:
    """The kind of file and its content: a link to "a" is no file that contains "a"."""
    return stat.S_IFMT(entry.mode), entry.digest
