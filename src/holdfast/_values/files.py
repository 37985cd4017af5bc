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

# What a tree keeps of st_mode: the kind of file, and the permission bits.
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
        """Whether it is a symbolic link; its content is the target."""
        return stat.S_ISLNK(self.mode)

    @property
    def is_directory(self) -> bool:
        """Whether it is an empty directory; it has no content."""
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
        """How many files it has."""
        return len(self.entries)

    def __iter__(self) -> Iterator[str]:
        """The paths in order, as text."""
        return map(os.fsdecode, sorted(self.entries))

    def __contains__(self, path: object) -> bool:
        """Whether it has a file at a path."""
        if not isinstance(path, str | bytes | os.PathLike):
            return False
        return os.fsencode(cast("str", path)) in self.entries

    def __getitem__(self, path: str | bytes | os.PathLike[str]) -> FileEntry:
        """The file at a path; ``KeyError`` if there is none."""
        return self.entries[os.fsencode(path)]


class TreeChanges(msgspec.Struct, frozen=True):
    """The paths in which two trees differ, each in order."""

    added: tuple[bytes, ...] = ()
    removed: tuple[bytes, ...] = ()
    changed: tuple[bytes, ...] = ()  # the content, or the kind of file
    mode_changed: tuple[bytes, ...] = ()  # the permission bits alone

    def __bool__(self) -> bool:
        """Whether there is any difference."""
        return bool(self.added or self.removed or self.changed or self.mode_changed)


@runtime_checkable
class Snapshot(Protocol):
    """What a save takes: the files of a folder at one moment, and their contents."""

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
    """What has to happen to the files of ``old`` to make those of ``new``."""
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

# What a workspace keeps for itself, in whichever folder: never a file of a tree.
OWN_FOLDER = ".holdfast"
# A scan goes 200 folders deep, and file systems take names of 255 bytes.
LONGEST_PATH, MOST_PARTS = (1 << 16) - 1, 256
# Letters that macOS does not see in a name.
_UNSEEN = re.compile(rb"\xe2\x80[\x8c-\x8f\xaa-\xae]|\xe2\x81[\xaa-\xaf]|\xef\xbb\xbf")


def wrong_path(paths: Sequence[bytes]) -> str | None:
    """What is wrong with one of some paths, ``None`` if each leads to a file below.

    Whatever made a list, no path of it leads out of the folder that it is written to,
    or to what a workspace keeps there for itself.
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
    # To look at all paths at once takes a twentieth of the time.
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
    """A path as a file system reads it that does not tell capitals from small letters.

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

    ``paths`` are those that are new; among the others there is none.
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
# How many files are compared at once.
_BLOCK = 256


def differences(old: Entries, new: Entries) -> tuple[set[bytes], set[bytes]]:
    """The paths at which ``new`` has another file, and those at which it has none."""
    found = {entry.path for entry in changed(old, new)}
    return found, missing(old, new, found)


def missing(old: Collection[bytes], new: Entries, found: Iterable[bytes]) -> set[bytes]:
    """The paths that only ``old`` has; ``found`` has all that only ``new`` has."""
    added = sum(path not in old for path in found)
    # To make a set of all paths takes longer than to compare all files.
    return set(old) - new.keys() if len(old) + added != len(new) else set()


def changed(old: Entries, new: Entries) -> list[FileEntry]:
    """The files of ``new`` that ``old`` does not have, or not so.

    Mostly few differ and the others are the same objects in the same order, as a scan
    gives them: then no step of Python is needed for each file.
    """
    found = _changed_in_place(list(old.values()), list(new.values()))
    if found is not None:
        return found
    other = compress(new.values(), map(is_not, map(old.get, new), new.values()))
    return [entry for entry in other if old.get(entry.path) != entry]


def _changed_in_place(
    old: list[FileEntry], new: list[FileEntry]
) -> list[FileEntry] | None:
    """What differs between files at the same paths, ``None`` if the paths differ."""
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
