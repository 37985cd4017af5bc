"""How large anything may be: refused before anything is written.

Each limit is what every backend can take: a row of SQLite and a message to PostgreSQL
hold about a gigabyte. docs/scaling.md lists them.
"""

from __future__ import annotations

from typing import Final

from holdfast.errors import Unstorable

# All values of a state together, as JSON.
LARGEST_STATE: Final = 1 << 30
# What is stored as one piece: an element of a list, such as a message.
LARGEST_ELEMENT: Final = 256 << 20
LARGEST_JOURNAL_VALUE: Final = 256 << 20
LARGEST_METADATA: Final = 16 << 20
MOST_TAGS: Final = 1000
LONGEST_QUERY: Final = 4096


def checked_size(data: bytes, path: str, most: int) -> bytes:
    """Encoded data, unless they are too large."""
    check_size(len(data), path, most)
    return data


def check_size(size: int, path: str, most: int) -> None:
    """Refuse what is too large, with the way out."""
    if size > most:
        raise Unstorable(
            path,
            f"takes {size:,} bytes as JSON, and {most:,} are allowed; divide it, or"
            " keep it in a file and save its name",
        )
