"""The files of a folder at one moment, as values: the tree, and how two trees differ.

Nothing here reads a folder or a store. Paths are bytes, because a file system takes
names that are not UTF-8; ``os.fsdecode`` makes the text that callers see.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import compress
from operator import is_not
from typing import Protocol, cast, runtime_checkable

import msgspec

# What a tree keeps of st_mode: the kind of file, and the permission bits.
KEPT_MODE = 0o170777


class FileEntry(msgspec.Struct, frozen=True, gc=False):
    """A file of a tree: a regular file, a symbolic link, or an empty directory."""

    path: bytes  # relative; "/" between the parts
    mode: int  # st_mode & KEPT_MODE
    size: int
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
    set_, gone = differences(old.entries, new.entries)
    added = [path for path in set_ if path not in old.entries]
    pairs = [(p, old.entries[p], new.entries[p]) for p in sorted(set_ - set(added))]
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


Entries = Mapping[bytes, FileEntry]


def differences(old: Entries, new: Entries) -> tuple[set[bytes], set[bytes]]:
    """The paths at which ``new`` has another file, and those at which it has none."""
    found = {each.path for each in not_same(old, new) if old.get(each.path) != each}
    return found, missing(old, new, found)


def missing(old: Collection[bytes], new: Entries, found: Iterable[bytes]) -> set[bytes]:
    """The paths that only ``old`` has; ``found`` are all that only ``new`` has, and
    others.
    """
    added = sum(path not in old for path in found)
    # To make sets of all paths takes as long as a fiftieth of a walk.
    return set(old) - new.keys() if len(old) + added != len(new) else set()


def not_same(old: Entries, new: Entries) -> list[FileEntry]:
    """The files of ``new`` that are not the very objects that ``old`` has.

    A scan gives the same objects for files that did not change. All of it is done
    without a step of Python for each file, the first way in half the time.
    """
    if len(old) == len(new):
        pairs = zip(old.values(), new.values(), strict=True)
        other = map(is_not, old.values(), new.values())
        found = list(compress(pairs, other))
        if all(one.path == two.path for one, two in found):
            return [two for _, two in found]
    other = map(is_not, map(old.get, new), new.values())
    return list(compress(new.values(), other))


def _content(entry: FileEntry) -> tuple[int, bytes]:
    """The kind of file and its content: a link to "a" is no file that contains "a"."""
    return stat.S_IFMT(entry.mode), entry.digest
