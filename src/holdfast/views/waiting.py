"""The reasons why threads wait: interrupted calls, unsaved messages, paused runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from holdfast._api.store import Store
from holdfast._engine.context import Context
from holdfast._engine.effects.interrupted import interrupted
from holdfast._engine.effects.lines import line_at
from holdfast._engine.threads.drafts import read_values_of
from holdfast._engine.threads.journal_keys import CALL, PENDING
from holdfast._engine.threads.load import read_listed
from holdfast._engine.threads.pending import find_pending, unsaved_messages
from holdfast._engine.threads.prefetch import prefetched, with_entries
from holdfast._messages.item_calls import PAUSED_RUN
from holdfast._messages.loose import fields_of
from holdfast._port import Threads
from holdfast._values.manifest import decode_manifest
from holdfast._values.records import PIN, Checkpoint, ThreadRecord
from holdfast.effects import Effect
from holdfast.views import langgraph_interrupts
from holdfast.views.documents import plain, thread_document
from holdfast.views.effects import effect_document
from holdfast.views.langgraph_interrupts import Waiting as Interrupt
from holdfast.views.references import Revision


class ThreadWaits(msgspec.Struct, frozen=True, kw_only=True):
    """The reasons why a thread waits; false if there is none.

    ``calls`` began and did not end. ``unsaved`` is the number of messages that are in
    the journal and in no checkpoint yet. ``paused_run`` is a run of OpenAI Agents,
    without its state. ``interrupts`` are questions of a LangGraph graph.
    """

    calls: tuple[Effect, ...] = ()
    unsaved: int = 0
    paused_run: dict[str, Any] | None = None
    interrupts: tuple[Interrupt, ...] = ()

    def __bool__(self) -> bool:
        return self != NOTHING


NOTHING = ThreadWaits()


def waiting_of(store: Store, record: ThreadRecord) -> ThreadWaits:
    """The reasons why a thread waits."""
    [found] = all_waiting(store, [record])
    return found


def all_waiting(store: Store, records: Sequence[ThreadRecord]) -> list[ThreadWaits]:
    """The reasons why each thread waits, in the given order."""
    return store.runner.run(waits_of, records)


async def waits_of(
    context: Context, records: Sequence[ThreadRecord]
) -> list[ThreadWaits]:
    """The reasons why each thread waits; none for a thread deleted meanwhile."""
    found = await _in_journals(context, records)
    return [await _asked(context, *both) for both in zip(records, found, strict=True)]


async def _asked(
    context: Context, record: ThreadRecord, found: ThreadWaits | None
) -> ThreadWaits:
    if found is None:
        return NOTHING
    asked = await langgraph_interrupts.waiting(context, record)
    return replace(found, interrupts=tuple(asked))


async def _in_journals(
    context: Context, records: Sequence[ThreadRecord]
) -> list[ThreadWaits | None]:
    context = await prefetched(context, records, (PAUSED_RUN,))
    context = await with_entries(context, records, PENDING, CALL)
    return [await read_listed(context, record, _in_journal) for record in records]


async def _in_journal(context: Context, record: ThreadRecord) -> ThreadWaits:
    pending = await find_pending(context, record)
    next_id = pending.parts[-1].next_id if pending.parts else None
    line = line_at(record, record.head, next_id)
    return ThreadWaits(
        calls=tuple(await interrupted(context, record.id, line)),
        unsaved=len(unsaved_messages(pending)[1]),
        paused_run=await _paused_run(context, record.head) if record.head else None,
    )


def threads_without_checkpoint(store: Store, limit: int) -> list[ThreadRecord]:
    """Among the threads used last, those that have a journal and no checkpoint yet.

    A recorder that was killed before its first save leaves one. Listings of threads do
    not have them.
    """
    return store.runner.run(_without_checkpoint, limit)


async def _without_checkpoint(context: Context, limit: int) -> list[ThreadRecord]:
    query = Threads(every=True, without=PIN, limit=limit)
    found = await context.backend.scan(query)
    return [t for t in found if t.head is None and t.deleted_at is None]


def waiting_at(store: Store, place: Revision) -> ThreadWaits:
    """The reasons why a thread waits if the checkpoint is its head, else none."""
    record = place.record or place.thread.about
    head = record.head if record else None
    if record is None or head is None or head.id != place.checkpoint.id:
        return NOTHING
    return waiting_of(store, record)


async def _paused_run(context: Context, head: Checkpoint) -> dict[str, Any] | None:
    if PAUSED_RUN not in decode_manifest(head).values:
        return None
    values = await read_values_of(context, head, PAUSED_RUN)
    run = fields_of(values[PAUSED_RUN])
    if "sdk" not in run:
        return None  # a value of the caller that has the same name
    return {name: run.get(name) for name in ("id", "agent", "calls")}


def waiting_documents(waiting: ThreadWaits) -> list[dict[str, Any]]:
    """A document for each thing that is waited for."""
    found: list[dict[str, Any]] = [
        {"kind": "interrupted_call", "call": effect_document(call)}
        for call in waiting.calls
    ]
    if waiting.unsaved:
        found.append({"kind": "unsaved_messages", "count": waiting.unsaved})
    if waiting.paused_run is not None:
        found.append({"kind": "paused_run", **plain(waiting.paused_run)})
    found += [
        {"kind": "interrupt", "id": i.id, "node": i.node, "value": plain(i.value)}
        for i in waiting.interrupts
    ]
    return found


def listed_thread(thread: ThreadRecord, waiting: ThreadWaits) -> dict[str, Any]:
    """A thread in a listing, with what it waits for."""
    return {**thread_document(thread), "waiting": waiting_documents(waiting)}
