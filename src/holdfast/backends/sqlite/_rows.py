"""Rows of the SQLite tables: what their checksums cover, and what is written."""

from __future__ import annotations

import msgspec
from xxhash import xxh3_64_intdigest

from holdfast._values.records import (
    CHECKSUM_SHIFT,
    Checkpoint,
    Entry,
    Segment,
    checksum,
)
from holdfast.backends._sql.rows import JOINED, Row, RowCodec
from holdfast.backends.sqlite._packed_manifests import unpack_manifest

CODEC = RowCodec(
    covered=(
        "seq", "id", "family", "thread", "parent", "step", "saved_at", "kind", "label",
        "tags", "runs", "size",
    ),
    placed=("thread", "checkpoint", "key"),
    unpacked=unpack_manifest,
)  # fmt: skip


def checkpoint_row(
    c: Checkpoint, seq: int, family: int, thread: int, parent: int | None
) -> Row:
    """The columns of ``checkpoint``, the checksum over all of them last."""
    row = CODEC.checkpoint_row(c, seq=seq, family=family, thread=thread, parent=parent)
    return row[JOINED:]


def segment_row(family: int, segment: Segment) -> Row:
    """The columns of ``segment``."""
    key = family << 32 | segment.number
    packing, data = segment.packing, segment.data
    # `segment_checksum` written out: every save has one.
    checked = xxh3_64_intdigest(data, key * 256 + packing) - CHECKSUM_SHIFT
    return key, packing, data, checked, segment.count


def entry_checksum(thread: int, entry: Entry) -> int:
    """Covers a journal entry with its place."""
    checked: int = CODEC.entry_row(entry, seq=0, thread=thread)[-1]
    return checked


def row_checksum(*columns: object) -> int:
    """Covers the columns of a row; the SQL function of this name in our statements."""
    return checksum(msgspec.msgpack.encode(columns))
