"""Files in the way of a restore that no snapshot has: found before it begins.

Such files are never overwritten or removed, also not with ``force``: no checkpoint
could bring them back.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator

from msgspec import structs

from holdfast._values.files import KEPT_MODE, FileEntry, parents
from holdfast._values.os_errors import is_nothing
from holdfast.workspace import _descriptors
from holdfast.workspace._open_files import readable
from holdfast.workspace._plan import FileChange
from holdfast.workspace._stores import StoresBelow


def look(top: int, path: bytes) -> os.stat_result | None:
    """The file at a path, ``None`` if there is none; follows no link on the way."""
    try:
        with _descriptors.parent(top, path) as (at, name):
            return os.stat(name, dir_fd=at, follow_symlinks=False)
    except OSError as error:  # a link in the place of a folder is found as such
        if is_nothing(error):
            return None
        raise


def remaining(top: int, changes: tuple[FileChange, ...]) -> tuple[FileChange, ...]:
    """The changes without those that are already there, unknown to any snapshot."""
    stores = StoresBelow(top)
    looked = (_looked(top, change, stores) for change in changes)
    return tuple(change for change in looked if change.before != change.after)


def _looked(top: int, change: FileChange, stores: StoresBelow) -> FileChange:
    """A change with what is there: a folder that has files, or an equal file."""
    after = change.after
    if change.before is not None or after is None:
        return change
    found = look(top, change.path)
    if found is None or (not after.is_directory and stores.at(change.path)):
        return change
    if not _is_equal(top, after, found):
        return change
    return structs.replace(
        change, before=structs.replace(after, mode=found.st_mode & KEPT_MODE)
    )


def _is_equal(top: int, entry: FileEntry, found: os.stat_result) -> bool:
    if entry.is_directory:
        return stat.S_ISDIR(found.st_mode)
    is_same = found.st_mode & KEPT_MODE == entry.mode and found.st_size == entry.size
    return is_same and _digest(top, entry) == entry.digest


def _digest(top: int, entry: FileEntry) -> bytes:
    with _descriptors.parent(top, entry.path) as (at, name):
        if entry.is_link:
            return hashlib.sha256(os.readlink(name, dir_fd=at)).digest()
        with readable(name, at) as file:
            digest = hashlib.sha256()
            for piece in _descriptors.pieces(file):
                digest.update(piece)
            return digest.digest()


def obstacles(top: int, changes: tuple[FileChange, ...]) -> tuple[bytes, ...]:
    """The paths that no change may touch and that a change would have to."""
    removed = {c.path for c in changes if c.before is not None and c.after is None}
    moved = removed | {c.path for c in changes if _becomes_folder(c)}
    found: set[bytes] = set()
    checked: set[bytes] = set()
    stores = StoresBelow(top)
    for change in changes:
        if change.after is None:
            continue
        if change.before is None or change.before.is_directory:
            store = stores.at(change.path)
            found.update([store] if store else _in_the_place(top, change, removed))
        for folder in parents(change.path):
            if folder in checked:
                break
            checked.add(folder)
            about = look(top, folder)
            if about and not stat.S_ISDIR(about.st_mode) and folder not in moved:
                found.add(folder)
    return tuple(sorted(found))


def _becomes_folder(change: FileChange) -> bool:
    before, after = change.before, change.after
    return bool(before and after and after.is_directory and not before.is_directory)


def _in_the_place(top: int, change: FileChange, removed: set[bytes]) -> Iterator[bytes]:
    """The unrecorded files at the place of a new file, or in a folder of its name."""
    about = look(top, change.path)
    if about is None:
        return
    if not stat.S_ISDIR(about.st_mode):
        yield change.path
        return
    if change.after is not None and change.after.is_directory:
        return
    with _descriptors.folder(top, change.path.split(b"/")) as at:
        yield from _unrecorded(at, change.path, removed)


def _unrecorded(at: int, place: bytes, removed: set[bytes]) -> Iterator[bytes]:
    with os.scandir(at) as listing:
        items = list(listing)
    for item in items:
        path = place + b"/" + os.fsencode(item.name)
        if item.is_dir(follow_symlinks=False):
            with _descriptors.opened(item.name, _descriptors.FOLDER, at) as inside:
                yield from _unrecorded(inside, path, removed)
        elif path not in removed:
            yield path
