"""Errors of Holdfast as the exceptions of Strands."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from strands.types.exceptions import SessionException, StorageError

from holdfast.errors import Conflict, HoldfastError

_OVERTAKEN = {"head_moved", "thread_deleted"}
_AGAIN = (
    "was changed by another agent since this one read it, and nothing was written;"
    " make the agent anew, which restores what is there, and repeat the turn"
)


@contextmanager
def of_session(what: str) -> Generator[None]:
    """Raise `SessionException` for every error of the store."""
    try:
        yield
    except HoldfastError as error:
        raise SessionException(f"{what} {_reason(error)}") from error


@contextmanager
def of_storage(key: str) -> Generator[None]:
    """Raise `StorageError` for every error of the store."""
    try:
        yield
    except (HoldfastError, UnicodeEncodeError) as error:
        raise StorageError(f"{key!r} {_reason(error)}") from error


def _reason(error: Exception) -> str:
    overtaken = isinstance(error, Conflict) and error.code in _OVERTAKEN
    return _AGAIN if overtaken else f"cannot be used: {error}"
