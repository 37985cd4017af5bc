"""Paths of deepagents and paths of a tree: ``/notes/plan.md`` and ``notes/plan.md``."""

from __future__ import annotations

import os
from collections.abc import Iterable

from deepagents.backends.utils import validate_path

from holdfast.workspace import FileEntry, Tree

ROOT = "/"
# The workspace's own folder; no checkpoint has files in it.
OWN_FOLDER = ".holdfast"


class Refused(Exception):
    """A call that cannot be done; ``code`` is one of deepagents' `FileOperationError`.

    The message is for the model.
    """

    def __init__(self, message: str, code: str = "invalid_path") -> None:
        super().__init__(message)
        self.code = code


def stored_path(path: str) -> bytes:
    """The path in a tree; empty for the root."""
    try:
        found = validate_path(path).strip("/")
    except ValueError as error:
        raise Refused(f"Error: {error}") from error
    if "\0" in found:
        raise Refused(f"Error: a path cannot have a zero byte: {path!r}")
    if OWN_FOLDER in found.lower().split("/"):
        raise Refused(f"Error: a file cannot be in a folder {OWN_FOLDER}: {path!r}")
    try:
        return os.fsencode(found) if found != "." else b""
    except UnicodeEncodeError as error:
        raise Refused(f"Error: not a path: {path!r}") from error


def shown_path(path: bytes) -> str:
    """The path as deepagents writes it."""
    return ROOT + os.fsdecode(path)


def is_plain(entry: FileEntry) -> bool:
    """True for a regular file; links are not followed."""
    return not entry.is_directory and not entry.is_link


def below(tree: Tree, place: bytes) -> list[FileEntry]:
    """The entry at a path and all below it, in order; all for the root."""
    prefix = place + b"/" if place else b""
    return [
        entry
        for path, entry in sorted(tree.entries.items())
        if path == place or path.startswith(prefix)
    ]


def plain_file(tree: Tree, path: str) -> FileEntry:
    """The regular file at a path."""
    place = stored_path(path)
    entry = tree.entries.get(place)
    if entry is not None and is_plain(entry):
        return entry
    if entry is not None and entry.is_link:
        raise Refused(
            f"Error: '{path}' is a symbolic link, which is not followed",
            "permission_denied",
        )
    if not place or below(tree, place):
        raise Refused(f"Error: '{path}' is a directory", "is_directory")
    raise Refused(f"Error: File '{path}' not found", "file_not_found")


def writable_path(tree: Tree, path: str) -> bytes:
    """The path at which a file can be written: new, or that of a regular file."""
    place = stored_path(path)
    for folder in _folders(place):
        entry = tree.entries.get(folder)
        if entry is not None and not entry.is_directory:
            above = shown_path(folder)
            raise Refused(f"Error: '{above}' is a file, and not a directory")
    if not place or (place not in tree.entries and below(tree, place)):
        raise Refused(f"Error: '{path}' is a directory", "is_directory")
    if place in tree.entries:
        plain_file(tree, path)
    return place


def _folders(place: bytes) -> Iterable[bytes]:
    while (cut := place.rfind(b"/")) > 0:
        place = place[:cut]
        yield place
