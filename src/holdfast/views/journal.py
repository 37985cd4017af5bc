"""The journal of a thread as people read it: calls, messages, grants, own entries."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast._engine.context import Context
from holdfast._engine.effects import ledger
from holdfast._engine.effects.calls import find_status
from holdfast._engine.effects.ledger import is_in_force
from holdfast._engine.effects.line import Line
from holdfast._engine.effects.lines import line_of
from holdfast._engine.threads.journal import OF_THREAD
from holdfast._engine.threads.journal_keys import GRANT
from holdfast._engine.threads.load import load_any
from holdfast._engine.threads.pending import find_pending, unsaved_messages
from holdfast._messages.attachments import whole
from holdfast._messages.call_keys import key_of
from holdfast._messages.loose import fields_of
from holdfast._messages.transcript import TranscriptCall, open_calls
from holdfast._port import Entries, FamilyEntries
from holdfast._values.records import Entry, ThreadRecord
from holdfast.effects import Effect
from holdfast.views.documents import iso, plain
from holdfast.views.effects import effect_document
from holdfast.views.messages import message_documents

CONVERSATION = "conversation"

# The keys by which the library finds its own entries of a thread again.
_OWN = re.compile(
    r"(call|undo):\d+:(begin|end):.*|effect:[0-9a-f]{32}:\d+:.*|anchor:.*"
    r"|merged:.*|pending:[^:]+:\d{6}|grant:.*",
    re.DOTALL,
)


class JournalView(msgspec.Struct, frozen=True, kw_only=True):
    """The entries that are recorded on a thread, by kind.

    ``interrupted`` calls began and did not end; those ``to_make`` were asked for and
    have no result yet. ``unsaved`` messages are in no checkpoint yet, the first of them
    at ``position``; those ``passed_over`` were recorded after a head that was left.
    ``calls`` are all others. ``grants`` are used up in the whole family.
    ``entries`` are the caller's own, ``bookkeeping`` those that the other fields were
    read from.
    """

    interrupted: Sequence[Effect]
    to_make: Sequence[TranscriptCall]
    position: int
    unsaved: Sequence[object]
    passed_over: Sequence[object]
    calls: Sequence[Effect]
    grants: Sequence[Entry]
    entries: Sequence[Entry]
    bookkeeping: Sequence[Entry]


async def journal_of(context: Context, thread: str) -> JournalView:
    """The entries that are recorded on a thread and its checkpoints, by kind."""
    record = await context.get_thread(thread)
    entries = await context.backend.scan(Entries(thread=thread))
    pending = await find_pending(context, record)
    position, unsaved = unsaved_messages(pending)
    made = await ledger.effects_of_family(context, record.family)
    own = [effect for effect in made if effect.thread == thread]
    unknown = [e for e in made if e.status == "unknown" and is_in_force(e, made)]
    if record.effects == "run":
        unknown = [effect for effect in unknown if effect.thread == thread]
    messages = await _messages(context, record, position, unsaved)
    line = await line_of(context, record, record.head)
    keys = {key_of(messages, call.id) for call in open_calls(messages)}
    interrupted = [
        effect
        for effect in unknown
        if effect.thread == thread
        # A call that the origin of a fork began.
        or (effect.key in keys and await line.has(context, effect))
    ]
    return JournalView(
        interrupted=interrupted,
        to_make=[
            call
            for call in await _to_make(context, record, messages, line)
            if key_of(messages, call.id) not in {effect.key for effect in interrupted}
        ],
        position=position,
        unsaved=unsaved,
        passed_over=pending.passed_over,
        calls=[effect for effect in own if effect not in interrupted],
        grants=await _grants(context, record),
        entries=[entry for entry in entries if not _is_bookkeeping(entry)],
        bookkeeping=[entry for entry in entries if _is_bookkeeping(entry)],
    )


def _is_bookkeeping(entry: Entry) -> bool:
    return entry.checkpoint == OF_THREAD and _OWN.fullmatch(entry.key) is not None


async def _grants(context: Context, record: ThreadRecord) -> Sequence[Entry]:
    query = FamilyEntries(family=record.family, prefix=GRANT)
    return await context.backend.scan(query)


async def _messages(
    context: Context, record: ThreadRecord, position: int, unsaved: Sequence[object]
) -> list[object]:
    """The transcript of a conversation with what no checkpoint has yet."""
    if record.kind != CONVERSATION:
        return []
    state = await load_any(context, record.head) if record.head else None
    saved: list[object] = list(whole(fields_of(state)))
    return [*saved[:position], *unsaved] if unsaved else saved


async def _to_make(
    context: Context, record: ThreadRecord, messages: Sequence[object], line: Line
) -> list[TranscriptCall]:
    """The calls of a transcript that are neither completed nor interrupted."""
    found: list[TranscriptCall] = []
    for call in open_calls(messages):
        key = key_of(messages, call.id)
        status = await find_status(context, record.id, key, line)
        if not (status.is_completed or status.is_interrupted):
            found.append(call)
    return found


# --- documents ------------------------------------------------------------------------


def journal_document(found: JournalView, *, verbose: bool = False) -> dict[str, Any]:
    """A journal for programs; ``verbose`` adds the entries of the library itself."""
    document: dict[str, Any] = {
        "interrupted": [effect_document(effect) for effect in found.interrupted],
        "to_make": [_call_document(call) for call in found.to_make],
        "unsaved_messages": list(message_documents(found.unsaved, found.position)),
        "passed_over": list(message_documents(found.passed_over)),
        "calls": [effect_document(effect) for effect in found.calls],
        "grants": [_grant_document(grant) for grant in found.grants],
        "entries": [entry_document(entry) for entry in found.entries],
    }
    if verbose:
        document["bookkeeping"] = [entry_document(e) for e in found.bookkeeping]
    return document


def _call_document(call: TranscriptCall) -> dict[str, Any]:
    about = {"tool": call.name, "arguments": plain(call.arguments)}
    return {**about, "call_id": call.id, "position": call.position}


def _grant_document(entry: Entry) -> dict[str, Any]:
    name = grant_name(entry)
    return {"grant": name, "thread": entry.thread, "used_at": iso(entry.recorded_at)}


def grant_name(entry: Entry) -> str:
    """The name that a grant was used up by."""
    return entry.key.removeprefix(GRANT)


def entry_document(entry: Entry) -> dict[str, Any]:
    """An entry of a thread, or of a checkpoint."""
    return {
        "key": entry.key,
        "checkpoint": entry.checkpoint or None,
        "value": plain(entry.value),
        "recorded_at": iso(entry.recorded_at),
        "seq": entry.seq,
    }
