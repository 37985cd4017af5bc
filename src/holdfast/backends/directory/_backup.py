"""A copy of a whole folder, made while processes go on writing."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Generator, Iterable, Iterator

from holdfast._values.os_errors import writing
from holdfast.backends.directory._catalog import IndexedFile
from holdfast.backends.directory._check import known_pieces
from holdfast.backends.directory._files import Files
from holdfast.backends.directory._folder import Folder
from holdfast.backends.directory._lines import FIRST, checked
from holdfast.backends.directory._open import ATTRIBUTES
from holdfast.errors import Conflict, HoldfastError

CHUNK = 1 << 20


class FileReplaced(Exception):
    """A file was replaced while it was being copied."""


@contextlib.contextmanager
def new_folder(path: str, files: Files) -> Generator[str]:
    """A folder to fill; it gets its name when it is complete, else it is removed."""
    if os.path.lexists(path):
        text = f"{path} exists; choose the name of a new folder"
        raise Conflict(text, code="file_exists")
    part = f"{path}.{os.getpid()}-{time.monotonic_ns()}.part"
    try:
        os.mkdir(part, 0o700)
    except OSError as error:
        text = f"{part} cannot be made: {error.strerror}; choose another place"
        raise HoldfastError(text, code="cannot_open") from error
    try:
        with writing(path):
            yield part
            os.rename(part, path)
            files.sync_folder(os.path.dirname(os.path.abspath(path)))
    except BaseException:
        # If it has its name already, only the syncing of that failed.
        name = part if os.path.lexists(part) else path
        shutil.rmtree(name, ignore_errors=True)
        raise


def copy_files(folder: Folder, files: Iterable[IndexedFile], target: str) -> None:
    """Copy the part of each file that the index knew at one moment.

    This part of a file never changes, unless the file is replaced as a whole.
    """
    for file in files:
        path = os.path.join(target, file.name)
        folder.files.remove(path)
        _write(folder, path, _known_lines(folder, file))
    name, content = ATTRIBUTES
    _write(folder, os.path.join(target, name), [content])
    folder.files.sync_folder(target)


def _known_lines(folder: Folder, file: IndexedFile) -> Iterator[bytes]:
    size, last = 0, b""
    try:
        for last in known_pieces(folder, file):
            size += len(last)
            yield last
    except FileNotFoundError:
        raise FileReplaced from None
    if size != file.taken or _check_of(last) != file.tail:
        raise FileReplaced


def _check_of(piece: bytes) -> str:
    try:
        return checked(piece)[0] if piece else FIRST
    except ValueError:
        return ""


def _write(folder: Folder, path: str, pieces: Iterable[bytes]) -> None:
    offset, chunk = 0, bytearray()
    for piece in pieces:
        chunk += piece
        if len(chunk) >= CHUNK:
            folder.files.write(path, offset, bytes(chunk))
            offset += len(chunk)
            chunk.clear()
    folder.files.write(path, offset, bytes(chunk))
    folder.files.sync(path)
