"""Threads, checkpoints and moves of heads as documents for programs."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import orjson

from holdfast._values import codec
from holdfast._values.records import EPOCH, Checkpoint, Move, ThreadRecord


def checkpoint_document(checkpoint: Checkpoint) -> dict[str, Any]:
    """A checkpoint without its state; with its ``traceparent``, if it has one."""
    trace = checkpoint.traceparent
    document = {
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
    return document if trace is None else {**document, "traceparent": trace}


def thread_document(thread: ThreadRecord) -> dict[str, Any]:
    """A thread with its head; ``effects`` is what tools may do in it, if it says."""
    origin = thread.forked_from
    return {
        "id": thread.id,
        "kind": thread.kind,
        "owner": thread.owner,
        "agent": thread.agent,
        "head": checkpoint_document(thread.head) if thread.head else None,
        "forked_from": origin._asdict() if origin else None,
        "effects": thread.effects,
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


def as_json(document: object, *, indented: bool = False) -> bytes:
    """A document as JSON, also with texts and numbers that orjson refuses."""
    try:
        return orjson.dumps(document, option=orjson.OPT_INDENT_2 if indented else 0)
    except TypeError:
        # Half of a surrogate pair becomes an escape, a number of more than 64 bits
        # its digits.
        between = None if indented else (",", ":")
        indent = 2 if indented else None
        return json.dumps(document, indent=indent, separators=between).encode()


def plain(value: object) -> Any:
    """A stored value for a document, exactly as the store writes it, tags included."""
    return orjson.loads(codec.encode(value))


def iso(at: int) -> str | int:
    """A time as ISO 8601; a time beyond the calendar stays a number."""
    found = utc(at)
    return at if found is None else f"{found:%Y-%m-%dT%H:%M:%S.%fZ}"


def utc(at: float) -> datetime | None:
    """A time in UTC, ``None`` beyond the calendar."""
    try:
        return EPOCH + timedelta(microseconds=at)
    except OverflowError:
        return None
