"""Rows of the SQLite tables to records and back, with their checksums checked."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast._values.records import Checkpoint, Entry, Segment, ThreadRecord, checksum
from holdfast.backends._rows import (
    Row,
    checkpoint_of,
    encode_runs,
    encode_tags,
    row_checksum,
    thread_of,
    to_headed_thread,
)
from holdfast.errors import Corrupt

__all__ = [
    "Row",
    "checkpoint_row",
    "encode_tags",
    "entry_checksum",
    "segment_row",
    "to_checkpoint",
    "to_entry",
    "to_headed_thread",
    "to_segments",
    "to_thread",
]


def checkpoint_row(
    c: Checkpoint, seq: int, family: int, thread: int, parent: int | None
) -> Row:
    """The columns of a checkpoint, the checksum over all of them last."""
    tags, runs = encode_tags(c.tags), encode_runs(c.runs)
    row = (
        seq, c.id, family, thread, parent, c.step, c.saved_at, c.kind, c.label, tags,
        c.encoded_metadata, runs, c.manifest, c.size, c.sha256, c.link,
    )  # fmt: skip
    return *row, _row_checksum(row)


def _row_checksum(row: Row) -> int:
    columns = (*row[:10], row[11], row[13])
    return row_checksum(columns, row[10], row[12], row[14], row[15])


def to_checkpoint(row: Row, *, orphaned: bool = False) -> Checkpoint:
    """A row of ``checkpoint_full``; `Corrupt` if it is not what was written.

    ``orphaned`` accepts one whose parent is gone.
    """
    (seq, id_, thread_name, parent, parent_id, step, saved_at, kind, label, tags, size,
     digest, family, runs, manifest, metadata, link, found, thread) = row  # fmt: skip
    columns = (
        seq, id_, family, thread, parent, step, saved_at, kind, label, tags, runs, size,
    )  # fmt: skip
    try:
        expected = row_checksum(columns, metadata, manifest, digest, link)
    except TypeError:
        expected = None
    if found != expected:
        raise Corrupt(f"checkpoint {id_!r} of thread {thread_name!r}")
    if not orphaned and (parent is None) != (parent_id is None):
        raise Corrupt(f"the parent of checkpoint {id_!r}", "it is missing")
    return checkpoint_of(row)


def to_thread(row: Row) -> ThreadRecord:
    """A row of ``thread_full``."""
    return thread_of(row, to_checkpoint)


def segment_row(family: int, segment: Segment) -> Row:
    """The columns of a segment."""
    key = family << 32 | segment.number
    sum_ = checksum(segment.data, key * 256 + segment.packing)
    return key, segment.packing, segment.data, sum_


def to_segments(rows: Iterable[Row]) -> list[Segment]:
    """Rows of ``segment``; `Corrupt` if one is not what was written."""
    segments: list[Segment] = []
    for key, packing, data, found in rows:
        if checksum(data, key * 256 + packing) != found:
            raise Corrupt(f"segment {key & 0xFFFF_FFFF} of family {key >> 32}")
        segments.append(Segment(key & 0xFFFF_FFFF, data, packing))
    return segments


def entry_checksum(thread: int, entry: Entry) -> int:
    """Covers a journal entry with its place."""
    return checksum(repr((thread, entry.checkpoint, entry.key)).encode() + entry.data)


def to_entry(row: Row, name: str) -> Entry:
    """A row of ``journal``; `Corrupt` if it is not what was written."""
    seq, checkpoint, key, value, recorded_at, found, thread = row
    entry = Entry(name, checkpoint, key, value, recorded_at, seq)
    if entry_checksum(thread, entry) != found:
        raise Corrupt(f"journal entry {key!r} of thread {name!r}")
    return entry
