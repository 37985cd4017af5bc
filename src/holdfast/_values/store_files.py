"""Telling the files of a store from other files, without opening them.

A database has a header, and a lock file beside it while it is open; the header of a new
one may still be in the log. A folder of text has a file of a fixed name, whose first
line begins as all lines do.
"""

from __future__ import annotations

import re

LOCK, SHARED_MEMORY = "-lock", "-shm"
# Endings of the files that stand beside a database.
COMPANIONS = ("-wal", SHARED_MEMORY, "-journal", LOCK)
# Sizes of a lock file: its records, sometimes followed by a notice.
LOCK_SIZES = frozenset({128, 148})
# Every store in a folder of text has this file.
STORE_OF_FILES = "store.jsonl"
# So many bytes of a file are enough to recognize it.
HEADER = 100
# The size of a database is a multiple of this.
SMALLEST_PAGE = 512

_MAGIC, _OURS, _ID_AT = b"SQLite format 3\0", b"HOLD", 68
_LINE = re.compile(rb'\{"bytes":[0-9]+,"check":"[0-9a-f]{16}","after":"')


def is_database(header: bytes, *, has_lock: bool) -> bool:
    """True if a file with this header is a database of ours."""
    application = header[_ID_AT : _ID_AT + len(_OURS)]
    # The header of a new store that is open, or was killed, is still in the log.
    is_young = application == bytes(len(_OURS)) and has_lock
    return header.startswith(_MAGIC) and (application == _OURS or is_young)


def is_lines(start: bytes) -> bool:
    """True if a file with this beginning belongs to a folder of text."""
    return _LINE.match(start) is not None
