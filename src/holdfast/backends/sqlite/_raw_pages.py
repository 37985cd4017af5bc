"""Rows of a SQLite file whose first page is lost: every page is read by itself.

Knows the file format (https://sqlite.org/fileformat2.html) as far as needed to find
rows without the schema; `_damaged_file` decides what they mean.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from itertools import chain
from typing import BinaryIO, NamedTuple

Value = int | float | str | bytes | None

TABLE_LEAF, INDEX_LEAF = 0x0D, 0x0A
HEADER = 100  # bytes of the first page before the tree
CHECKSUM = 8  # bytes at the end of our pages
SMALLEST_USABLE = 480
LONGEST_PAYLOAD = 1 << 30
_SIZES = (0, 1, 2, 3, 4, 6, 8)
_WAL_MAGICS = {0x377F0682, 0x377F0683}


class Row(NamedTuple):
    """A row of some table; the id is 0 in a table without row ids."""

    id: int
    values: tuple[Value, ...]


class Layout(NamedTuple):
    """The size of pages, and how much of each is used."""

    page: int
    usable: int


class Carver:
    """Reads a file page by page; the write-ahead log's version of a page wins."""

    def __init__(self, file: BinaryIO, log: BinaryIO | None, layout: Layout) -> None:
        self._file, self._log, self._layout = file, log, layout
        self._logged = _logged_pages(log, layout.page) if log is not None else {}
        self._pages = file.seek(0, os.SEEK_END) // layout.page
        self._count = max(self._pages, max(self._logged, default=0))

    def rows(self) -> Iterator[Row]:
        """All rows that can be decoded, in the order of the file."""
        # A log may say any number.
        behind = sorted(number for number in self._logged if number > self._pages)
        for number in chain(range(1, self._pages + 1), behind):
            page = self._page(number)
            start = HEADER if number == 1 else 0
            if len(page) > start and page[start] in (TABLE_LEAF, INDEX_LEAF):
                yield from self._cells(page, start)

    def _page(self, number: int) -> bytes:
        at = self._logged.get(number)
        file, place = self._file, (number - 1) * self._layout.page
        if at is not None and self._log is not None:
            file, place = self._log, at
        file.seek(place)
        return file.read(self._layout.page)

    def _cells(self, page: bytes, start: int) -> Iterator[Row]:
        is_table = page[start] == TABLE_LEAF
        (count,) = struct.unpack_from(">H", page, start + 3)
        for index in range(count):
            try:
                (at,) = struct.unpack_from(">H", page, start + 8 + 2 * index)
                yield self._cell(page, at, is_table=is_table)
            except (struct.error, IndexError, ValueError):
                continue  # this cell cannot be decoded; others may

    def _cell(self, page: bytes, at: int, *, is_table: bool) -> Row:
        size, at = _varint(page, at)
        row_id = 0
        if is_table:
            row_id, at = _varint(page, at)
        if not 0 < size < LONGEST_PAYLOAD:
            raise ValueError("not a payload")
        local = self._local_size(size, is_table=is_table)
        payload = page[at : at + local]
        if local < size:
            (following,) = struct.unpack_from(">I", page, at + local)
            payload += self._overflow(following, size - local)
        if len(payload) != size:
            raise ValueError("cut short")
        return Row(row_id, tuple(_record(payload)))

    def _local_size(self, size: int, *, is_table: bool) -> int:
        usable = self._layout.usable
        most = usable - 35 if is_table else (usable - 12) * 64 // 255 - 23
        if size <= most:
            return size
        least = (usable - 12) * 32 // 255 - 23
        some = least + (size - least) % (usable - 4)
        return some if some <= most else least

    def _overflow(self, number: int, left: int) -> bytes:
        parts: list[bytes] = []
        room = self._layout.usable - 4
        while left > 0:
            if not 1 < number <= self._count:
                raise ValueError("the chain is broken")
            page = self._page(number)
            parts.append(page[4 : 4 + min(left, room)])
            left -= room
            (number,) = struct.unpack_from(">I", page)
        return b"".join(parts)


def layouts(file: BinaryIO) -> Iterator[Layout]:
    """Possible layouts of the pages: by the header, and those that stores have."""
    file.seek(0)
    header = file.read(HEADER)
    if header.startswith(b"SQLite format 3\0"):
        (size,) = struct.unpack_from(">H", header, 16)
        size = 65536 if size == 1 else size
        if size >= SMALLEST_USABLE and size & (size - 1) == 0:
            yield Layout(size, size - header[20])
    for size in (8192, 4096, 2048):
        yield Layout(size, size - CHECKSUM)
        yield Layout(size, size)


def _logged_pages(log: BinaryIO, size: int) -> dict[int, int]:
    """The offset of the newest committed version of each page in a write-ahead log."""
    whole = log.seek(0, os.SEEK_END) - 24 - size  # a frame may begin up to here
    log.seek(0)
    header = log.read(32)
    if len(header) < 32:  # noqa: PLR2004
        return {}
    # Either the magic or the page size is enough: the other may have a flipped bit.
    magic, _, page = struct.unpack_from(">III", header)
    if magic not in _WAL_MAGICS and page != size:
        return {}
    committed: dict[int, int] = {}
    pending: dict[int, int] = {}
    for place in range(32, whole + 1, 24 + size):
        log.seek(place)
        frame = log.read(24)
        if frame[8:16] != header[16:24]:  # damaged, or of an earlier use of the log
            continue
        number, is_commit = struct.unpack_from(">II", frame)
        pending[number] = place + 24
        if is_commit:
            committed |= pending
            pending = {}
    return committed


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for index in range(8):
        byte = data[at + index]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:  # noqa: PLR2004 - the highest bit says that more follows
            return value, at + index + 1
    value = value << 8 | data[at + 8]
    return value - (1 << 64) if value >> 63 else value, at + 9


def _record(payload: bytes) -> Iterator[Value]:
    end, at = _varint(payload, 0)
    body = end
    if not at < end <= len(payload):  # a row has at least one column
        raise ValueError("not a record")
    while at < end:
        kind, at = _varint(payload, at)
        value, body = _value(payload, kind, body)
        yield value
    if body != len(payload):
        raise ValueError("not as long as its header says")


def _value(payload: bytes, kind: int, at: int) -> tuple[Value, int]:
    if kind < 0 or kind in (10, 11):
        raise ValueError("no such type")
    if kind >= 12:  # noqa: PLR2004 - blobs are even, texts odd from here on
        size = (kind - 12) // 2
        data = payload[at : at + size]
        if len(data) < size:
            raise ValueError("cut short")
        return (data.decode() if kind % 2 else data), at + size
    if kind in (0, 8, 9):
        return {0: None, 8: 0, 9: 1}[kind], at
    if kind == 7:  # noqa: PLR2004 - a float
        return struct.unpack_from(">d", payload, at)[0], at + 8
    size = _SIZES[kind]
    if at + size > len(payload):
        raise ValueError("cut short")
    return int.from_bytes(payload[at : at + size], "big", signed=True), at + size
