"""How the files of a store are told from other files, without opening it.

A database has a header, and a lock file beside it while it is open; in a young one the
header is in the log still. A folder of text has a file of a fixed name, whose first
line begins as all lines do.
"""

from __future__ import annotations

import re

LOCK, SHARED_MEMORY = "-lock", "-shm"
# What stands beside a database, by the endings of the names.
COMPANIONS = ("-wal", SHARED_MEMORY, "-journal", LOCK)
# Of a lock file: its records, and behind them sometimes a notice.
LOCK_SIZES = frozenset({128, 148})
# What every store has that is a folder of text.
STORE_OF_FILES = "store.jsonl"
# The bytes that are enough to tell.
HEADER = 100
# The size of a database is a multiple of that.
SMALLEST_PAGE = 512

_MAGIC, _OURS, _ID_AT = b"SQLite format 3\0", b"HOLD", 68
_LINE = re.compile(rb'\{"bytes":[0-9]+,"check":"[0-9a-f]{16}","after":"')


def is_database(header: bytes, *, has_lock: bool) -> bool:
    """Whether a file that begins so is a database of ours."""
    application = header[_ID_AT : _ID_AT + len(_OURS)]
    # A young store that is open, or was killed, has its header in the log still.
    is_young = application == bytes(len(_OURS)) and has_lock
    return header.startswith(_MAGIC) and (application == _OURS or is_young)


def is_lines(start: bytes) -> bool:
    """Whether a file that begins so is one of a folder of text."""
    return _LINE.match(start) is not None
