"""The target of an export: a stream, or a new file that appears when complete."""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from typing import IO, BinaryIO

from holdfast._values.arguments import checked_path, kind_of
from holdfast._values.os_errors import writing
from holdfast.errors import Conflict, HoldfastError, Unstorable

Target = str | os.PathLike[str] | BinaryIO


@contextmanager
def new_file(target: Target) -> Generator[BinaryIO]:
    """A file to write, readable by its owner only; it gets its name at the end.

    If the block raises, no file remains. A stream is used directly.
    """
    if not isinstance(target, str | os.PathLike):
        if not callable(getattr(target, "write", None)):
            text = f"must be a path, or a file open for writing, not {kind_of(target)}"
            raise Unstorable("to", text)
        yield target
        return
    path = checked_path(target, "to")
    part = f"{path}.{secrets.token_hex(8)}.part"
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        text = f"{path} cannot be made: {error.strerror}; choose another place"
        raise HoldfastError(text, code="cannot_open") from error
    try:
        with writing(path), open(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with writing(path):
            _take_name(part, path)
    finally:
        # If it cannot be removed, its name tells that it is not complete.
        with contextlib.suppress(OSError):
            os.unlink(part)


def scratch_file(target: Target) -> IO[bytes]:
    """A file without a name on the disk of a target; for a stream on any."""
    folder = None
    if isinstance(target, str | os.PathLike):
        folder = os.path.dirname(os.path.abspath(target))
    try:
        return tempfile.TemporaryFile(dir=folder)
    except OSError as error:
        text = f"{folder} cannot be written to: {error.strerror}; choose another place"
        raise HoldfastError(text, code="cannot_open") from error


def _take_name(part: str, path: str) -> None:
    """Give a file its name; `Conflict` if a file of that name exists."""
    try:
        os.link(part, path)
    except OSError as error:
        if isinstance(error, FileExistsError) or os.path.lexists(path):
            text = f"{path} exists; choose the name of a new file"
            raise Conflict(text, code="file_exists") from None
        os.rename(part, path)  # a file system without hard links
