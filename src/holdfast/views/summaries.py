"""Messages and threads in a few words, for listings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from holdfast._api.store import Store
from holdfast._engine.cache import OpenedCheckpoint
from holdfast._engine.context import Context
from holdfast._engine.records import transcript_tail
from holdfast._engine.records.last_messages import last_messages
from holdfast._engine.threads import drafts, load, prefetch
from holdfast._messages.tally import tally_of
from holdfast._messages.transcript import answers_of, calls_of, role_of
from holdfast._values.records import Checkpoint, ThreadRecord
from holdfast.errors import Corrupt
from holdfast.views import outcome
from holdfast.views.messages import one_line_text

TITLE, COUNTS = "title", "counts"
# How far before a result the call is looked for.
TAIL = 16


class MessageSummary(msgspec.Struct, frozen=True):
    """The role of a message, its text on one line, and the tool it is a result of."""

    role: str
    text: str
    tool: str | None = None


class ThreadSummary(msgspec.Struct, frozen=True):
    """The summary of a thread; ``messages`` is their number, if it is known.

    ``user_messages`` are those of the user among them.
    """

    title: str | None = None
    messages: int | None = None
    user_messages: int | None = None
    last: MessageSummary | None = None


# --- the messages of checkpoints ------------------------------------------------------


def new_messages(
    store: Store, checkpoints: Sequence[Checkpoint], width: int
) -> dict[str, MessageSummary]:
    """The last message of each checkpoint, by its id, if its parent has another one.

    ``width`` is that of values in the arguments of calls.
    """
    return store.runner.run(_new_messages, checkpoints, width)


async def _new_messages(
    context: Context, checkpoints: Sequence[Checkpoint], width: int
) -> dict[str, MessageSummary]:
    messages = await last_messages(context, checkpoints)
    last = {c.id: m for c, m in zip(checkpoints, messages, strict=True)}
    new = {
        c.id: (c, message)
        for c, message in zip(checkpoints, messages, strict=True)
        if message is not None and message != last.get(c.parent or "")
    }
    tools = _tools(messages)
    return {
        id_: await _summary(context, checkpoint, message, tools, width)
        for id_, (checkpoint, message) in new.items()
    }


async def _summary(
    context: Context,
    checkpoint: Checkpoint,
    message: object,
    tools: Mapping[str, str],
    width: int,
) -> MessageSummary:
    answered = answers_of(message)
    tool = None
    if answered:
        tool = outcome.tool_of(message) or tools.get(answered[0])
        if tool is None:
            tail = await transcript_tail.newest_of(
                context, OpenedCheckpoint.of(checkpoint), TAIL
            )
            tool = _tools(tail).get(answered[0])
    role = "tool" if tool else role_of(message)
    return MessageSummary(role, one_line_text(message, width=width), tool)


def _tools(messages: Sequence[object]) -> dict[str, str]:
    """The names of the tools that messages call, by the id of the call."""
    calls = (call for message in messages for call in calls_of(message))
    return {call.id: call.name for call in calls if call.name}


# --- threads --------------------------------------------------------------------------


def thread_summaries(
    store: Store, records: Sequence[ThreadRecord], width: int
) -> list[ThreadSummary]:
    """The summary of each thread, in the given order."""
    return store.runner.run(_thread_summaries, records, width)


async def _thread_summaries(
    context: Context, records: Sequence[ThreadRecord], width: int
) -> list[ThreadSummary]:
    heads = [record.head for record in records if record.head]
    try:
        found = await last_messages(context, heads)
    except Corrupt:
        found = [None] * len(heads)  # the rest can still be read
    last = {head.id: message for head, message in zip(heads, found, strict=True)}
    context = await prefetch.prefetched(context, records, (TITLE, COUNTS))
    values = [
        await load.read_listed(context, record, _values) or {} for record in records
    ]
    return [
        await _thread_summary(context, record, their, last, width)
        for record, their in zip(records, values, strict=True)
    ]


async def _values(context: Context, record: ThreadRecord) -> dict[str, Any]:
    if record.head is None:
        return {}
    try:
        return await drafts.read_values_of(context, record.head, TITLE, COUNTS)
    except Corrupt:
        return {}


async def _thread_summary(
    context: Context,
    record: ThreadRecord,
    values: Mapping[str, Any],
    last: Mapping[str, object],
    width: int,
) -> ThreadSummary:
    title = values.get(TITLE, record.metadata.get(TITLE))
    message = last.get(record.head.id) if record.head else None
    summary = None
    if record.head is not None and message is not None:
        summary = await _summary(context, record.head, message, {}, width)
    counted = tally_of(values[COUNTS]) if COUNTS in values else None
    return ThreadSummary(
        title=title if isinstance(title, str) and title else None,
        messages=counted.messages if counted else None,
        user_messages=counted.user_messages if counted else None,
        last=summary,
    )
