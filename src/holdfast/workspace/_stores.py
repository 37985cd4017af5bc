"""Stores of ours in a folder: no snapshot has them, and no restore touches them.

A snapshot of a store, saved in that store, would grow with each save; an older version
of its files, put back while it is open, would destroy it.
"""

from __future__ import annotations

import contextlib
import os
import stat

from holdfast._values.files import parents
from holdfast._values.os_errors import is_nothing
from holdfast._values.store_files import (
    COMPANIONS,
    HEADER,
    LOCK,
    LOCK_SIZES,
    SMALLEST_PAGE,
    STORE_OF_FILES,
    is_database,
    is_lines,
)
from holdfast.workspace import _descriptors
from holdfast.workspace._open_files import OpenFiles, is_same

A_STORE = "a Holdfast store"


def is_store_file(at: int, name: str, about: os.stat_result) -> bool:
    """True if a file in the folder ``at`` is the database of a store."""
    if not stat.S_ISREG(about.st_mode) or about.st_size % SMALLEST_PAGE:
        return False
    lock = _file(at, name + LOCK)
    # One that is open here is not opened again: closing it would drop SQLite's locks.
    if lock is not None and lock.st_size in LOCK_SIZES:
        return True
    if about.st_size == 0:
        return False
    return is_database(_header(at, name, about), has_lock=lock is not None)


def is_companion(at: int, name: str) -> bool:
    """True if a file in the folder ``at`` is the log or the like of a store there."""
    return any(_is_store(at, each) for each in _companion_of(name))


def _companion_of(name: str) -> list[str]:
    """The database that a file stands beside, by its name."""
    return [name.removesuffix(end) for end in COMPANIONS if name.endswith(end)]


def _is_store(at: int, name: str) -> bool:
    about = _file(at, name)
    return about is not None and is_store_file(at, name, about)


def is_store_folder(at: int) -> bool:
    """True if a folder is a store of text files."""
    try:
        with _descriptors.opened(STORE_OF_FILES, _descriptors.READ, at) as file:
            return is_lines(os.read(file, HEADER))
    except OSError as error:
        if is_nothing(error):
            return False
        raise


class StoresBelow:
    """The stores in a folder that a restore could write to."""

    def __init__(self, top: int) -> None:
        self._top = top
        self._folders: dict[bytes, bool] = {}

    def at(self, path: bytes) -> bytes | None:
        """The store that a file at a path would belong to, ``None`` if to none."""
        for folder in (path, *parents(path)):
            if self._is_folder(folder):
                return folder
        try:
            with _descriptors.parent(self._top, path) as (at, name):
                text = os.fsdecode(name)
                for each in (text, *_companion_of(text)):
                    if _is_store(at, each):
                        return path.removesuffix(name) + os.fsencode(each)
        except OSError as error:
            if not is_nothing(error):
                raise
        return None

    def _is_folder(self, path: bytes) -> bool:
        if path not in self._folders:
            self._folders[path] = self._look(path)
        return self._folders[path]

    def _look(self, path: bytes) -> bool:
        try:
            with _descriptors.folder(self._top, path.split(b"/")) as at:
                return is_store_folder(at)
        except OSError as error:
            if is_nothing(error):
                return False
            raise


def _file(at: int, name: str) -> os.stat_result | None:
    """A regular file in a folder, ``None`` if there is none of this name."""
    try:
        found = os.stat(name, dir_fd=at, follow_symlinks=False)
    except OSError as error:
        if is_nothing(error):
            return None
        raise
    return found if stat.S_ISREG(found.st_mode) else None


def _header(at: int, name: str, about: os.stat_result) -> bytes:
    mine = OpenFiles().find(about)
    if mine is not None:
        with contextlib.suppress(OSError):
            header = os.pread(mine, HEADER, 0)
            if is_same(mine, about):
                return header
    with _descriptors.opened(name, _descriptors.READ, at) as file:
        return os.read(file, HEADER)
