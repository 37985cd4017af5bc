"""Exit statuses: their meanings, and the status of each error."""

from __future__ import annotations

from typing import Final

from holdfast.errors import (
    Busy,
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
USAGE: Final = 2
NOT_FOUND: Final = 3
DAMAGED: Final = 4
CONFLICT: Final = 5
DENIED: Final = 6
FORMAT: Final = 7
INTERNAL: Final = 70
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

# The first class that fits decides; the code decides for errors of no such class.
_CLASSES: tuple[tuple[type[HoldfastError], int], ...] = (
    (NotFound, NOT_FOUND),
    (Conflict, CONFLICT),
    (Busy, CONFLICT),
    (Corrupt, DAMAGED),
    (FormatMismatch, FORMAT),
    (Unstorable, USAGE),
    (Unsupported, DENIED),
)
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
    for kind, status in _CLASSES:
        if isinstance(error, kind):
            return status
    return _CODES.get(error.code, INTERNAL)
