"""The records of a family from another store as statements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import asdict

from holdfast._port import Adoption
from holdfast._values.records import Move
from holdfast.backends._sql.rows import (
    CheckpointRow,
    EntryRow,
    RowCodec,
    ThreadRow,
)

Values = dict[str, Any]


def thread_statements(row: ThreadRow) -> Iterator[tuple[str, Values]]:
    """Named statements with values that insert a thread."""
    yield "adopt_thread", asdict(row)
    if row.deleted_at is not None:  # its last change was the deletion
        last = Move(row.changed, row.name, "delete", None, None, row.deleted_at)
        yield "adopt_move", _move_values(last, row.family, row.number, {})


def record_statements(
    codec: RowCodec, adoption: Adoption
) -> Iterator[tuple[str, Values]]:
    """Likewise for what belongs to the threads of a family, except the segments."""
    family = adoption.family
    seqs = adoption.known | {c.id: c.seq for c in adoption.checkpoints}
    numbers = {t.id: t.number for t in adoption.threads if t.deleted_at is None}
    for c in adoption.checkpoints:
        parent = seqs[c.parent] if c.parent is not None else None
        row = codec.checkpoint_row(
            c, seq=c.seq, family=c.family, thread=c.thread_number, parent=parent
        )
        yield "adopt_checkpoint", asdict(CheckpointRow(*row))
    for entry in adoption.entries:
        number = numbers[entry.thread]
        row = codec.entry_row(entry, seq=entry.seq, thread=number)
        yield "insert_entry", {"family": family, **asdict(EntryRow(*row))}
    for move in adoption.moves:
        values = _move_values(move, family, numbers[move.thread], seqs)
        yield "adopt_move", values


def _move_values(move: Move, family: int, thread: int, seqs: dict[str, int]) -> Values:
    return {
        "family": family,
        "seq": move.seq,
        "thread": thread,
        "kind": move.kind,
        "source": seqs.get(move.source or ""),
        "target": seqs.get(move.target or ""),
        "at": move.moved_at,
    }
