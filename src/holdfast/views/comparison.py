"""Two checkpoints by what differs, and several branches side by side."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Annotated, Any

import msgspec
import orjson

from holdfast._engine.context import Context
from holdfast._engine.threads.file_changes import difference as file_difference
from holdfast._engine.threads.fork_point import common_ancestor
from holdfast._engine.threads.listing import get
from holdfast._engine.threads.load import load_any
from holdfast._messages.transcript import calls_of, role_of, text_of
from holdfast._values.records import Checkpoint
from holdfast.diff import Change, Diff
from holdfast.views.differences import OPS, difference
from holdfast.views.documents import plain
from holdfast.views.files import shown_file_changes
from holdfast.views.showing import Showing
from holdfast.views.state_values import StateReader, Transcript, reader_of

MOST_CHANGES = 500
MOST_MESSAGES = 200
MOST_ROWS = 1_000


class DiffQuery(msgspec.Struct, frozen=True, kw_only=True, rename={"start": "from"}):
    """Two checkpoints to compare.

    ``bookkeeping`` includes what a framework keeps for itself.
    """

    start: str
    to: str
    bookkeeping: bool = False


class CompareQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Several checkpoints, most often heads of forks."""

    at: Annotated[list[str], msgspec.Meta(min_length=2, max_length=8)]


# --- two checkpoints ------------------------------------------------------------------


async def diff_document(
    context: Context, query: DiffQuery, showing: Showing
) -> dict[str, Any]:
    """Every change of a value and of a file, and what became of the messages."""
    old, new = await get(context, query.start), await get(context, query.to)
    states = await load_any(context, old), await load_any(context, new)
    found = difference(*states, bookkeeping=query.bookkeeping)
    files = await file_difference(context, new.thread, old, new)
    shared = await common_ancestor(context, old, new)
    return {
        "from": old.id,
        "to": new.id,
        **change_list(found, showing),
        **shown_file_changes(files, showing),
        "ancestor": {"id": shared.id, "step": shared.step} if shared else None,
        "messages": await _message_changes(context, old, new, showing),
    }


def change_list(found: Diff, showing: Showing) -> dict[str, Any]:
    """Changes with their counts, as many as one can look at."""
    changes = [_change(change, showing) for change in found.changes[:MOST_CHANGES]]
    return {
        "changes": changes,
        "cut": len(found.changes) > MOST_CHANGES,
        "counts": {op: sum(c.op == op for c in found.changes) for op in OPS},
    }


def _change(change: Change, showing: Showing) -> dict[str, Any]:
    return {
        "op": change.op,
        "path": showing.redacted(plain(list(change.path))),
        "old": showing.value(change.old),
        "new": showing.value(change.new),
    }


async def _message_changes(
    context: Context, old: Checkpoint, new: Checkpoint, showing: Showing
) -> dict[str, Any]:
    before = await StateReader(context, old).transcript()
    after = await StateReader(context, new).transcript()
    shared = _shared(before.messages, after.messages)
    return {
        "name": after.name,
        "shared": shared,
        "removed": _tail(before, shared, showing),
        "added": _tail(after, shared, showing),
    }


def _shared(old: Sequence[object], new: Sequence[object]) -> int:
    """The number of equal messages at the beginning of both."""
    pairs = zip(old, new, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _tail(transcript: Transcript, first: int, showing: Showing) -> list[dict[str, Any]]:
    end = min(len(transcript.messages), first + MOST_MESSAGES)
    return [
        brief_message(transcript.messages[position], position, showing)
        for position in range(first, end)
    ]


def brief_message(message: object, position: int, showing: Showing) -> dict[str, Any]:
    """A message without its parts and the results of its calls."""
    return {
        "position": position,
        "role": role_of(message),
        "text": showing.text(text_of(message)),
        "calls": [
            {
                "name": showing.line(call.name),
                "arguments": showing.value(call.arguments),
            }
            for call in calls_of(message, position)
        ],
    }


# --- several branches -----------------------------------------------------------------


class _Column(msgspec.Struct, frozen=True):
    """The messages of one checkpoint, and a mark for each that equal ones share."""

    checkpoint: Checkpoint
    transcript: Transcript
    marks: list[bytes]


async def compare_document(
    context: Context, query: CompareQuery, showing: Showing
) -> dict[str, Any]:
    """Messages aligned by what the branches have in common."""
    columns = [await _column(context, id_) for id_ in query.at]
    aligned = _aligned([column.marks for column in columns])
    rows = [_row(columns, places, showing) for places in aligned[:MOST_ROWS]]
    parts_at = next((n for n, row in enumerate(rows) if not row["same"]), None)
    return {
        "columns": [column_head(column.checkpoint) for column in columns],
        "rows": rows,
        "parts_at": parts_at,
        "cut": len(aligned) > MOST_ROWS,
    }


async def _column(context: Context, id_: str) -> _Column:
    reader = await reader_of(context, id_)
    transcript = await reader.transcript()
    marks = [
        orjson.dumps(plain(message), option=orjson.OPT_SORT_KEYS)
        for message in transcript.messages
    ]
    return _Column(reader.checkpoint, transcript, marks)


def column_head(checkpoint: Checkpoint) -> dict[str, Any]:
    """The checkpoint that a column of a comparison is about."""
    return {
        "thread": checkpoint.thread,
        "checkpoint": checkpoint.id,
        "title": checkpoint.thread,
        "step": checkpoint.step,
    }


def _row(
    columns: Sequence[_Column], places: Sequence[int | None], showing: Showing
) -> dict[str, Any]:
    cells = [
        None
        if place is None
        else brief_message(column.transcript.messages[place], place, showing)
        for column, place in zip(columns, places, strict=True)
    ]
    marks = {
        None if place is None else column.marks[place]
        for column, place in zip(columns, places, strict=True)
    }
    return {"cells": cells, "same": len(marks) == 1}


def _aligned(lists: Sequence[Sequence[bytes]]) -> list[list[int | None]]:
    """Rows of positions: one column after another is laid beside those before it."""
    rows: list[list[int | None]] = [[n] for n in range(len(lists[0]))]
    for number, marks in enumerate(lists[1:], 1):
        rows = _beside(rows, _marks_of(rows, lists), marks, number)
    return rows


def _marks_of(
    rows: Sequence[Sequence[int | None]], lists: Sequence[Sequence[bytes]]
) -> list[bytes]:
    """The mark, for each row, of the first column that has a message there."""
    return [
        next(lists[n][place] for n, place in enumerate(row) if place is not None)
        for row in rows
    ]


def _beside(
    rows: Sequence[list[int | None]],
    known: Sequence[bytes],
    marks: Sequence[bytes],
    width: int,
) -> list[list[int | None]]:
    """Rows with one more column, aligned by the longest common subsequence."""
    found: list[list[int | None]] = []
    matcher = SequenceMatcher(None, known, marks, autojunk=False)
    for kind, first, last, start, end in matcher.get_opcodes():
        shared = min(last - first, end - start)
        # Where both differ, messages at the same distance stand in one row.
        if kind not in {"equal", "replace"}:
            shared = 0
        found += [[*rows[first + n], start + n] for n in range(shared)]
        found += [[*row, None] for row in rows[first + shared : last]]
        found += [[*[None] * width, n] for n in range(start + shared, end)]
    return found
