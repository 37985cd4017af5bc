"""Threads and checkpoints as documents for programs and as text for people."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from holdfast._values.records import EPOCH, Checkpoint, Move, ThreadRecord
from holdfast.cli.terminal.output import Span, plain
from holdfast.diff import excerpt

_UNITS = ("B", "kB", "MB", "GB", "TB")
_STEP = 1000


# --- documents ------------------------------------------------------------------------


def checkpoint_document(checkpoint: Checkpoint) -> dict[str, Any]:
    """A checkpoint without its state."""
    return {
        "id": checkpoint.id,
        "thread": checkpoint.thread,
        "step": checkpoint.step,
        "parent": checkpoint.parent,
        "seq": checkpoint.seq,
        "saved_at": iso(checkpoint.saved_at),
        "kind": checkpoint.kind,
        "label": checkpoint.label,
        "tags": list(checkpoint.tags),
        "size": checkpoint.size,
        "digest": checkpoint.digest,
        "metadata": plain(checkpoint.metadata),
    }


def thread_document(thread: ThreadRecord) -> dict[str, Any]:
    """A thread with its head."""
    origin = thread.forked_from
    return {
        "id": thread.id,
        "kind": thread.kind,
        "owner": thread.owner,
        "agent": thread.agent,
        "head": checkpoint_document(thread.head) if thread.head else None,
        "forked_from": origin._asdict() if origin else None,
        "created_at": iso(thread.created_at),
        "updated_at": iso(thread.updated_at),
        "metadata": plain(thread.metadata),
    }


def move_document(move: Move) -> dict[str, Any]:
    """A move of a head."""
    return {
        "seq": move.seq,
        "thread": move.thread,
        "kind": move.kind,
        "source": move.source,
        "target": move.target,
        "moved_at": iso(move.moved_at),
    }


def iso(at: int) -> str | int:
    """A time as ISO 8601; a clock may go beyond the calendar and stays a number."""
    found = moment(at)
    return at if found is None else f"{found:%Y-%m-%dT%H:%M:%S.%fZ}"


# --- text -----------------------------------------------------------------------------


def time(at: int) -> str:
    """A time for people, to the second."""
    found = moment(at)
    return str(at) if found is None else f"{found:%Y-%m-%d %H:%M:%SZ}"


def moment(at: int) -> datetime | None:
    """A time in UTC, ``None`` beyond the calendar."""
    try:
        return EPOCH + timedelta(microseconds=at)
    except OverflowError:
        return None


def size(count: float) -> str:
    """A number of bytes for people."""
    for unit in _UNITS[:-1]:
        if count < _STEP:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= _STEP
    return f"{count:.1f} {_UNITS[-1]}"


def marks(checkpoint: Checkpoint) -> list[Span]:
    """The label and the tags of a checkpoint."""
    label = [(f"[{checkpoint.label}]", "label")] if checkpoint.label else []
    return label + [(f"#{tag}", "tag") for tag in checkpoint.tags]


def pairs(values: Mapping[str, object]) -> str:
    """A small mapping on one line."""
    return " ".join(f"{name}={excerpt(value)}" for name, value in values.items())
