"""The files of a folder at one moment, as values: the tree, and how two trees differ.

Nothing here reads a folder or a store. Paths are bytes, because a file system takes
names that are not UTF-8; ``os.fsdecode`` makes the text that callers see.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
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
    common = sorted(old.entries.keys() & new.entries.keys())
    pairs = [(path, old.entries[path], new.entries[path]) for path in common]
    other = [
        path for path, before, after in pairs if _content(before) != _content(after)
    ]
    kept = set(other)
    return TreeChanges(
        added=tuple(sorted(new.entries.keys() - old.entries.keys())),
        removed=tuple(sorted(old.entries.keys() - new.entries.keys())),
        changed=tuple(other),
        mode_changed=tuple(
            path
            for path, before, after in pairs
            if path not in kept and before.mode != after.mode
        ),
    )


def _content(entry: FileEntry) -> tuple[int, bytes]:
    """The kind of file and its content: a link to "a" is no file that contains "a"."""
    return stat.S_IFMT(entry.mode), entry.digest
