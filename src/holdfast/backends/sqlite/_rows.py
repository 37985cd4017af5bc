"""Rows of the SQLite tables to records and back, with their checksums checked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from holdfast._records import (
    Checkpoint,
    Entry,
    Origin,
    Run,
    Segment,
    ThreadRecord,
    checksum,
)
from holdfast.errors import Corrupt

# Columns arrive as whatever the file holds; the checksum is what vouches for them.
Row = tuple[Any, ...]

HEAD_COLUMNS = 14


def encode_runs(runs: tuple[Run, ...]) -> str:
    """The text of the ``runs`` column."""
    return orjson.dumps([list(run) for run in runs]).decode()


def encode_tags(tags: tuple[str, ...]) -> str | None:
    """The text of the ``tags`` column, null for none."""
    return orjson.dumps(tags).decode() if tags else None


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
    # The blobs follow the rest, each with its length, so that no two rows read alike.
    metadata, manifest, digest, link = row[10], row[12], row[14], row[15] or b""
    plain = (*row[:10], row[11], row[13], len(metadata), len(manifest), len(link))
    return checksum(b"".join((orjson.dumps(plain), metadata, manifest, digest, link)))


def to_checkpoint(row: Row, *, orphaned: bool = False) -> Checkpoint:
    """A row of ``checkpoint_full``; `Corrupt` if it is not what was written.

    ``orphaned`` accepts one whose parent is gone.
    """
    (seq, id_, thread_name, parent, parent_id, step, saved_at, kind, label, tags, size,
     digest, family, runs, manifest, metadata, link, found, thread) = row  # fmt: skip
    columns = (
        seq, id_, family, thread, parent, step, saved_at, kind, label, tags, metadata,
        runs, manifest, size, digest, link,
    )  # fmt: skip
    try:
        expected = _row_checksum(columns)
    except TypeError:
        expected = None
    if found != expected:
        raise Corrupt(f"checkpoint {id_!r} of thread {thread_name!r}")
    if not orphaned and (parent is None) != (parent_id is None):
        raise Corrupt(f"the parent of checkpoint {id_!r}", "it is missing")
    return Checkpoint(
        id=id_,
        thread=thread_name,
        parent=parent_id,
        seq=seq,
        step=step,
        saved_at=saved_at,
        kind=kind,
        label=label,
        tags=tuple(orjson.loads(tags)) if tags else (),
        size=size,
        sha256=digest,
        family=family,
        thread_number=thread,
        runs=tuple(Run(*run) for run in orjson.loads(runs)),
        manifest=manifest,
        encoded_metadata=metadata,
        link=link,
    )


def to_thread(row: Row) -> ThreadRecord:
    """A row of ``thread_full``."""
    name, head = row[0], row[HEAD_COLUMNS - 1]
    if head is not None and row[HEAD_COLUMNS] is None:
        raise Corrupt(f"the head of thread {name!r}", "its checkpoint is missing")
    found = None if head is None else to_checkpoint(row[HEAD_COLUMNS:])
    return to_headed_thread(row[:HEAD_COLUMNS], found)


def to_headed_thread(row: Row, found: Checkpoint | None) -> ThreadRecord:
    """The columns of a thread itself, and its head."""
    (name, kind, owner, agent, metadata, family, forked_thread, forked_checkpoint,
     created_at, updated_at, deleted_at, changed, number, _) = row  # fmt: skip
    return ThreadRecord(
        id=name,
        kind=kind,
        owner=owner,
        agent=agent,
        head=found,
        forked_from=Origin(forked_thread, forked_checkpoint) if forked_thread else None,
        created_at=created_at,
        updated_at=updated_at,
        deleted_at=deleted_at,
        changed=changed,
        family=family,
        number=number,
        encoded_metadata=metadata,
    )


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
