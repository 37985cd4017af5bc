"""Exit statuses and their meanings; those of errors are said by their classes."""

from __future__ import annotations

from typing import Final

from holdfast.errors import (
    Conflict,
    Corrupt,
    FormatMismatch,
    HoldfastError,
    NotFound,
    Unstorable,
    Unsupported,
)

OK: Final = 0
NEGATIVE: Final = 1
USAGE: Final = Unstorable.exit_status
NOT_FOUND: Final = NotFound.exit_status
DAMAGED: Final = Corrupt.exit_status
CONFLICT: Final = Conflict.exit_status
DENIED: Final = Unsupported.exit_status
FORMAT: Final = FormatMismatch.exit_status
INTERNAL: Final = HoldfastError.exit_status
DISK: Final = 74
INTERRUPTED: Final = 130
PIPE: Final = 141

MEANINGS = {
    OK: "done",
    NEGATIVE: "done, and the answer is no: `diff --exit-code` found a difference,"
    " `search` found nothing, the user answered a question with no",
    USAGE: "the command line is wrong, or needs `--yes`",
    NOT_FOUND: "no such store, thread or checkpoint, or more than one",
    DAMAGED: "stored bytes are damaged",
    CONFLICT: "another process was first, or holds the lock, or both sides of a merge"
    " changed the same; nothing was changed",
    DENIED: "not allowed, or not supported by this store or installation",
    FORMAT: "not a Holdfast store, or its format is newer than this program",
    INTERNAL: "an internal error of Holdfast; `-v` shows where",
    DISK: "the disk is full or fails",
    INTERRUPTED: "interrupted with Ctrl-C",
    PIPE: "the program that read the output stopped reading",
}

# Codes of errors that have only the root class: a port, a connection or a disk failed.
_CODES = {
    "cannot_listen": DENIED,
    "cannot_open": DENIED,
    "connection_lost": CONFLICT,
    "disk_full": DISK,
    "io_error": DISK,
    "log_removed": DISK,
}


def status_of(error: HoldfastError) -> int:
    """The exit status of an error."""
    is_root = error.exit_status == INTERNAL
    return _CODES.get(error.code, INTERNAL) if is_root else error.exit_status
