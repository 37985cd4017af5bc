"""Rows of the PostgreSQL tables to records and back, with their checksums checked.

Unlike in a file, the server gives the numbers after the checksum was made. The checksum
covers the content and the parent of a checkpoint, not its numbers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any

from psycopg.types.numeric import Int2

from holdfast._port import Start, Write
from holdfast._values.records import Checkpoint, Entry, Run, Segment
from holdfast.backends._sql.rows import CheckpointRow, RowCodec, segment_checksum

CODEC = RowCodec(
    covered=(
        "id", "parent", "parent_id", "step", "saved_at", "kind", "label", "tags",
        "runs", "size",
    ),
    placed=("checkpoint", "key"),
)  # fmt: skip


def checkpoint_values(c: Checkpoint, parent: int | None) -> dict[str, Any]:
    """A checkpoint as parameters; its own numbers are 0, the server gives them."""
    row = CODEC.checkpoint_row(c, seq=0, family=0, thread=0, parent=parent)
    return dict(zip(CheckpointRow.__struct_fields__, row, strict=True))


# The parameters that say how a thread begins, and the fields of `Start` they are.
_BEGINNING = {
    f"begin_{field}": field
    for field in Start.__struct_fields__
    if field not in {"head", "origin"}
}
_NO_BEGINNING: dict[str, Any] = dict.fromkeys(_BEGINNING)


def start_values(start: Start | None) -> dict[str, Any]:
    """The beginning of a thread with its first save, as parameters of a statement."""
    if start is None:
        return _NO_BEGINNING
    return {name: getattr(start, field) for name, field in _BEGINNING.items()}


def save_values(writes: Sequence[Write]) -> dict[str, Any]:
    """Saves of the plainest kind as the parameters of one statement."""
    rows = [plain_save_values(write) for write in writes]
    owners = [n for n, write in enumerate(writes, 1) for _ in write.segments]
    columns = {f"all_{name}": [row[name] for row in rows] for name in _SAVED}
    segments = segment_values([s for write in writes for s in write.segments])
    return {**columns, **segments, "owners": owners}


def plain_save_values(write: Write) -> dict[str, Any]:
    """A save on a known head as parameters, without its segments."""
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


# A save of the plainest kind without its segments, as `save_each` takes many of them.
_SAVED = (
    "family", "thread", "expected", "at", "id", "parent_id", "step", "saved_at", "kind",
    "metadata", "runs", "manifest", "size", "digest", "checksum",
)  # fmt: skip


def append_values(write: Write) -> dict[str, Any]:
    """A plain save of one segment as parameters."""
    [segment] = write.segments
    return {
        **plain_save_values(write),
        "segment_number": segment.number,
        "segment_packing": segment.packing,
        "segment_data": segment.data,
        "segment_checksum": segment_checksum(segment.number, segment),
    }


def segment_values(segments: Sequence[Segment]) -> dict[str, Any]:
    """Segments as the parameters of a statement."""
    return {
        "numbers": [segment.number for segment in segments],
        "packings": [Int2(segment.packing) for segment in segments],
        "pieces": [segment.data for segment in segments],
        "checksums": [segment_checksum(s.number, s) for s in segments],
    }


def piece_values(wanted: Sequence[tuple[int, Run]]) -> dict[str, Any]:
    """Runs of families as the parameters of ``pieces``; places count them from 0."""
    return {
        "places": [*range(len(wanted))],
        "families": [family for family, _ in wanted],
        "firsts": [run.first for _, run in wanted],
        "lasts": [run.last for _, run in wanted],
    }


def entry_values(entries: Sequence[Entry]) -> dict[str, Any]:
    """Journal entries as the parameters of a statement."""
    rows = [CODEC.entry_row(entry, seq=0, thread=0) for entry in entries]
    return {
        "entry_checkpoints": [entry.checkpoint for entry in entries],
        "entry_keys": [entry.key for entry in entries],
        "entry_contents": [entry.data for entry in entries],
        "entry_times": [entry.recorded_at for entry in entries],
        "entry_checksums": [row[-1] for row in rows],
    }


def in_order(runs: Iterable[Run], segments: list[Segment]) -> list[Segment] | None:
    """The segments that hold the runs, in order; ``None`` if one is missing."""
    wanted = [n for first, last in runs for n in range(first, last + 1)]
    if [segment.number for segment in segments] == wanted:
        return segments
    found = {segment.number: segment for segment in segments}
    firsts = sorted(found)
    ordered: list[Segment] = []
    for first, last in runs:
        number = first
        while number <= last:
            place = bisect_right(firsts, number)
            holder = found[firsts[place - 1]] if place else None
            if holder is None or holder.last < number:
                return None
            ordered.append(holder)
            number = holder.last + 1
    return ordered
