"""Rows of the PostgreSQL tables to records and back, with their checksums checked.

Unlike in a file, numbers are given by the server after the checksum was made: it covers
what a checkpoint holds and what it comes after, not where it stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from holdfast._backend import Start
from holdfast._records import (
    Checkpoint,
    Entry,
    Origin,
    Run,
    Segment,
    ThreadRecord,
    checksum,
)
from holdfast.backends.postgres._arrays import byteas, int2s, int8s, texts
from holdfast.errors import Corrupt

Row = tuple[Any, ...]

HEAD_COLUMNS = 14
STATE_COLUMNS = 33


def checkpoint_values(c: Checkpoint, parent: int | None) -> dict[str, Any]:
    """A checkpoint as the parameters of a statement."""
    tags = orjson.dumps(c.tags).decode() if c.tags else None
    runs = orjson.dumps([list(run) for run in c.runs]).decode()
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
        "checksum": _checksum(columns, blobs),
    }


def _checksum(columns: Row, blobs: tuple[bytes, bytes, bytes, bytes | None]) -> int:
    # The blobs follow the rest, each with its length, so that no two rows read alike.
    metadata, manifest, digest, link = blobs
    plain = (*columns, len(metadata), len(manifest), len(link or b""))
    parts = (orjson.dumps(plain), metadata, manifest, digest, link or b"")
    return checksum(b"".join(parts))


def to_checkpoint(row: Row) -> Checkpoint:
    """A row of ``checkpoint_full``; `Corrupt` if it is not what was written."""
    (seq, id_, thread_name, parent, parent_id, step, saved_at, kind, label, tags, size,
     digest, family, runs, manifest, metadata, link, found, thread) = row  # fmt: skip
    columns = (
        id_, parent, parent_id, step, saved_at, kind, label, tags, runs, size,
    )  # fmt: skip
    if found != _checksum(columns, (metadata, manifest, digest, link)):
        raise Corrupt(f"checkpoint {id_!r} of thread {thread_name!r}")
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


def start_values(start: Start | None) -> dict[str, Any]:
    """How a thread begins with its first save, as the parameters of a statement."""
    return {
        "begin_kind": start.kind if start else None,
        "begin_owner": start.owner if start else None,
        "begin_agent": start.agent if start else None,
        "begin_metadata": start.metadata if start else None,
        "begin_anew": start.anew if start else None,
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
