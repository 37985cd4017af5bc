"""Errors of the operating system in our words."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Generator

from holdfast._values.limits import no_memory
from holdfast.errors import HoldfastError

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
# Errors of looking at a path where no file is, or whose folder is a file or a link.
NOTHING_THERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
# The process or the system has no descriptor or memory left; the error says nothing
# about the file.
NO_ROOM = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
MAKE_ROOM = "close files, or raise the limit (ulimit -n)"


def no_room(error: OSError) -> HoldfastError:
    """The error for a limit of the system that was reached, such as of open files."""
    where = f"{error.filename}: " if isinstance(error.filename, str) else ""
    way = "free some memory" if error.errno == errno.ENOMEM else MAKE_ROOM
    text = f"{where}{error.strerror}; {way}, and repeat the call"
    return HoldfastError(text, code="io_error")


@contextlib.contextmanager
def needing_room() -> Generator[None]:
    """Turns errors about a limit of the system into ours, and no others."""
    try:
        yield
    except OSError as error:
        if error.errno in NO_ROOM:
            raise no_room(error) from error
        raise
    except MemoryError as error:
        raise no_memory() from error


def can_open(count: int) -> bool:
    """True if so many more files can be open at the same time."""
    opened: list[int] = []
    try:
        opened.extend(os.open(os.devnull, os.O_RDONLY) for _ in range(count))
    except OSError:
        return False
    finally:
        for file in opened:
            os.close(file)
    return True


@contextlib.contextmanager
def writing(path: str) -> Generator[None]:
    """Turns errors of writing a new file or folder into ours, which name it."""
    try:
        yield
    except HoldfastError:
        raise
    except OSError as error:
        raise unwritten(path, error) from error


def unwritten(path: str, error: OSError) -> HoldfastError:
    """The error for a new file or folder that was not written to its end."""
    is_full = error.errno in FULL
    advice = "free some space" if is_full else "look at the disk"
    return HoldfastError(
        f"{path} was not written: {error.strerror}; {advice}, or choose another place",
        code="disk_full" if is_full else "io_error",
    )


@contextlib.contextmanager
def reading(path: str) -> Generator[None]:
    """Turns errors of reading files into ours: an error does not mean "no file"."""
    try:
        yield
    except HoldfastError:
        raise
    except OSError as error:
        where = error.filename if isinstance(error.filename, str) else "a file"
        raise HoldfastError(
            f"{where} in {path} cannot be looked at: {error.strerror}; nothing was"
            " written; look at the disk, its permissions and the limit of open files,"
            " and try again",
            code="io_error",
        ) from error


def is_nothing(error: OSError) -> bool:
    """True if the error means that no file is there."""
    return error.errno in NOTHING_THERE
