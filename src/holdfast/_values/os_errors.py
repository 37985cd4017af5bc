"""Errors of the operating system in our words."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Generator

from holdfast.errors import HoldfastError

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


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
