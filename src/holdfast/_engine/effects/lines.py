"""The kind of line that a thread has; it decides how calls are left behind.

A call is left behind with its checkpoint. Graphs and sessions can also lose a call
whose checkpoint stays an ancestor; what they have stored tells.
"""

from __future__ import annotations

from holdfast._engine.context import Context
from holdfast._engine.effects.graph_line import GraphLine
from holdfast._engine.effects.line import Line
from holdfast._engine.effects.transcript_line import TranscriptLine
from holdfast._engine.threads.pending import next_ids
from holdfast._messages import langgraph_form
from holdfast._messages.item_calls import SUMMARY
from holdfast._values.manifest import decode_manifest
from holdfast._values.records import Checkpoint, ThreadRecord

_CONVERSATION = "conversation"


async def line_of(
    context: Context, record: ThreadRecord, at: Checkpoint | None
) -> Line:
    """The line of a thread that ends at a checkpoint.

    If that is the head, it goes on with what a recorder got and no checkpoint has yet.
    """
    head = record.head
    is_head = (at and at.id) == (head and head.id)
    following = await next_ids(context, record) if is_head else []
    return line_at(record, at, following[0] if following else None)


def line_at(
    record: ThreadRecord,
    at: Checkpoint | None,
    next_id: str | None = None,
    known: dict[str, bool] | None = None,
) -> Line:
    """The line of a thread that ends at a checkpoint, with the id saved next on it.

    ``known`` is what was found out about anchors on it before.
    """
    if record.kind == langgraph_form.KIND:
        return GraphLine(record.family, at)
    if record.kind == _CONVERSATION and at is not None:
        return conversation_line(at, next_id, known)
    return Line(record.family, at, next_id, known)


def conversation_line(
    at: Checkpoint, next_id: str | None, known: dict[str, bool] | None = None
) -> Line:
    """The line of a conversation that ends at a checkpoint."""
    # A session that took items back may have taken calls of a recorder back too.
    by_items = SUMMARY in decode_manifest(at).values
    return TranscriptLine(at.family, at, next_id, by_items=by_items, known=known)
