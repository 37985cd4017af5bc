"""Rows of the PostgreSQL tables to records and back, with their checksums checked.

Unlike in a file, numbers are given by the server after the checksum was made: it covers
what a checkpoint holds and what it comes after, not where it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from holdfast._port import Start, Write
from holdfast._values.records import (
    Checkpoint,
    Entry,
    Run,
    Segment,
    ThreadRecord,
    checksum,
)
from holdfast.backends._rows import (
    Row,
    checkpoint_of,
    encode_runs,
    encode_tags,
    row_checksum,
    thread_of,
    to_headed_thread,
)
from holdfast.backends.postgres._arrays import Array, byteas, int2s, int8s, texts
from holdfast.errors import Corrupt

__all__ = [
    "STATE_COLUMNS",
    "Row",
    "checkpoint_values",
    "entry_checksum",
    "entry_values",
    "in_order",
    "save_values",
    "segment_values",
    "start_values",
    "to_checkpoint",
    "to_entry",
    "to_headed_thread",
    "to_segments",
    "to_thread",
]

STATE_COLUMNS = 33


def checkpoint_values(c: Checkpoint, parent: int | None) -> dict[str, Any]:
    """A checkpoint as the parameters of a statement."""
    tags, runs = encode_tags(c.tags), encode_runs(c.runs)
    columns = (
        c.id, parent, c.parent, c.step, c.saved_at, c.kind, c.label, tags, runs, c.size,
    )  # fmt: skip
    blobs = (c.encoded_metadata, c.manifest, c.sha256, c.link)
    return {
        "id": c.id,
        "parent_id": c.parent,
        "step": c.step,
        "saved_at": c.saved_at,
        "kind": c.kind,
        "label": c.label,
        "tags": tags,
        "metadata": c.encoded_metadata,
        "runs": runs,
        "manifest": c.manifest,
        "size": c.size,
        "digest": c.sha256,
        "link": c.link,
        "checksum": row_checksum(columns, *blobs),
    }


def to_checkpoint(row: Row) -> Checkpoint:
    """A row of ``checkpoint_full``; `Corrupt` if it is not what was written."""
    (_, id_, thread_name, parent, parent_id, step, saved_at, kind, label, tags, size,
     digest, _, runs, manifest, metadata, link, found, _) = row  # fmt: skip
    columns = (
        id_, parent, parent_id, step, saved_at, kind, label, tags, runs, size,
    )  # fmt: skip
    if found != row_checksum(columns, metadata, manifest, digest, link):
        raise Corrupt(f"checkpoint {id_!r} of thread {thread_name!r}")
    return checkpoint_of(row)


def to_thread(row: Row) -> ThreadRecord:
    """A row of ``thread_full``."""
    return thread_of(row, to_checkpoint)


def start_values(start: Start | None) -> dict[str, Any]:
    """How a thread begins with its first save, as the parameters of a statement."""
    return {
        "begin_kind": start.kind if start else None,
        "begin_owner": start.owner if start else None,
        "begin_agent": start.agent if start else None,
        "begin_metadata": start.metadata if start else None,
        "begin_anew": start.anew if start else None,
    }


def save_values(writes: Sequence[Write]) -> dict[str, Any]:
    """Saves of the plainest kind as the parameters of one statement."""
    rows = [_save_values(write) for write in writes]
    owners = [n for n, write in enumerate(writes, 1) for _ in write.segments]
    columns = {
        f"all_{name}": _ARRAYS[name]([row[name] for row in rows]) for name in _ARRAYS
    }
    segments = segment_values([s for write in writes for s in write.segments])
    return {**columns, **segments, "owners": int8s(owners)}


def _save_values(write: Write) -> dict[str, Any]:
    parent, saved = write.expect, write.checkpoint
    assert isinstance(parent, Checkpoint)
    assert saved is not None
    return {
        **checkpoint_values(saved, parent.seq),
        "family": parent.family,
        "thread": write.thread,
        "expected": parent.seq,
        "at": write.at,
    }


_ARRAYS: dict[str, Callable[[list[Any]], Array]] = {
    "family": int8s,
    "thread": texts,
    "expected": int8s,
    "at": int8s,
    "id": texts,
    "parent_id": texts,
    "step": int8s,
    "saved_at": int8s,
    "kind": texts,
    "metadata": byteas,
    "runs": texts,
    "manifest": byteas,
    "size": int8s,
    "digest": byteas,
    "checksum": int8s,
}


def segment_values(segments: Sequence[Segment]) -> dict[str, Any]:
    """Segments as the parameters of a statement."""
    return {
        "numbers": int8s([segment.number for segment in segments]),
        "packings": int2s([segment.packing for segment in segments]),
        "pieces": byteas([segment.data for segment in segments]),
        "checksums": int8s([segment_checksum(segment) for segment in segments]),
    }


def entry_values(entries: Sequence[Entry]) -> dict[str, Any]:
    """Journal entries as the parameters of a statement."""
    return {
        "entry_checkpoints": texts([entry.checkpoint for entry in entries]),
        "entry_keys": texts([entry.key for entry in entries]),
        "entry_contents": byteas([entry.data for entry in entries]),
        "entry_times": int8s([entry.recorded_at for entry in entries]),
        "entry_checksums": int8s([entry_checksum(entry) for entry in entries]),
    }


def segment_checksum(segment: Segment) -> int:
    """Covers a segment with its number."""
    return checksum(segment.data, segment.number * 256 + segment.packing)


def to_segments(family: int, rows: Iterable[Row]) -> list[Segment]:
    """Rows of ``segment``; `Corrupt` if one is not what was written."""
    segments: list[Segment] = []
    for number, packing, data, found in rows:
        if checksum(data, number * 256 + packing) != found:
            raise Corrupt(f"segment {number} of family {family}")
        segments.append(Segment(number, data, packing))
    return segments


def in_order(runs: Iterable[Run], segments: list[Segment]) -> list[Segment] | None:
    """The segments in the order of the runs, ``None`` if one of them is missing."""
    wanted = [n for first, last in runs for n in range(first, last + 1)]
    if [segment.number for segment in segments] == wanted:
        return segments
    found = {segment.number: segment for segment in segments}
    if len(segments) != len(wanted) or found.keys() != set(wanted):
        return None
    return [found[number] for number in wanted]


def entry_checksum(entry: Entry) -> int:
    """Covers a journal entry with its place in the thread."""
    return checksum(repr((entry.checkpoint, entry.key)).encode() + entry.data)


def to_entry(row: Row, name: str) -> Entry:
    """A row of ``journal``; `Corrupt` if it is not what was written."""
    seq, checkpoint, key, value, recorded_at, found, _ = row
    entry = Entry(name, checkpoint, key, value, recorded_at, seq)
    if entry_checksum(entry) != found:
        raise Corrupt(f"journal entry {key!r} of thread {name!r}")
    return entry
