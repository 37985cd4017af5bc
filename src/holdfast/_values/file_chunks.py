"""Cutting the content of a file into chunks, so that an edit changes few of them.

A chunk ends behind a separator, at the place in reach whose bytes have the lowest hash.
The place depends on the bytes alone and not on their position: behind an edit the same
places are found again. Python looks at places, not at bytes: a megabyte takes some
milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from zlib import crc32

SMALLEST, LARGEST = 4 << 10, 16 << 10
# The bytes before a place that decide about it.
WINDOW = 48

_LINES = re.compile(rb"\n")
# Ends of words in content without lines: minified, columns of numbers, binary.
_WORDS = re.compile(rb"[\x00-\x20,;>)\]}]")


def cut(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The chunks of a content that comes in pieces of any size."""
    rest = b""
    for piece in pieces:
        rest += piece
        position = 0
        while len(rest) - position > LARGEST:
            end = _end(rest, position + SMALLEST, position + LARGEST)
            yield rest[position:end]
            position = end
        rest = rest[position:]
    if rest:
        yield rest


def _end(data: bytes, first: int, last: int) -> int:
    """The best place to cut between two positions."""
    for separator in (_LINES, _WORDS):
        found = [match.end() for match in separator.finditer(data, first, last)]
        if found:
            return min(found, key=lambda end: crc32(data[end - WINDOW : end]))
    return last
