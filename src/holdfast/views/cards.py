"""Cards: what is going on in a thread, at one look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

import msgspec

from holdfast._engine.context import Context
from holdfast._engine.records.last_messages import last_messages
from holdfast._engine.threads import family
from holdfast._engine.threads.drafts import read_values_of
from holdfast._engine.threads.listing import ThreadsQuery, threads
from holdfast._engine.threads.load import read_listed
from holdfast._engine.threads.prefetch import prefetched
from holdfast._messages.transcript import calls_of, role_of
from holdfast._port import FamilyThreads
from holdfast._values.records import PIN, Checkpoint, ThreadRecord
from holdfast.errors import Corrupt, Unstorable
from holdfast.views.documents import iso
from holdfast.views.messages import one_line_text
from holdfast.views.outcome import is_error
from holdfast.views.showing import PageSize, Showing
from holdfast.views.usage import RUN, Spent, spent_in_run
from holdfast.views.waiting import ThreadWaits, waits_of

State: TypeAlias = Literal["working", "waiting", "failed", "done"]

TITLE = "title"
# A thread that was used so recently is at work, whatever its last message is.
RECENT = 60 * 1_000_000
# How many pages of threads are looked through for a state before the page is given.
MOST_PAGES = 20


class CardsQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A page of threads, last used first; ``state`` keeps only cards of that state."""

    owner: str | None = None
    agent: str | None = None
    kind: str | None = None
    prefix: str | None = None
    state: str | None = None
    limit: PageSize = 50
    cursor: int | None = None


async def threads_document(
    context: Context, query: CardsQuery, showing: Showing
) -> dict[str, Any]:
    """A page of cards."""
    if query.state is not None and query.state not in get_args(State):
        states = ", ".join(get_args(State))
        raise Unstorable("state", f"is one of {states}, not {query.state!r}")
    found: list[dict[str, Any]] = []
    cursor = query.cursor
    for _ in range(MOST_PAGES):
        page = await threads(context, _listing(query, cursor))
        cards = await cards_of(context, page, showing)
        for record, card in zip(page, cards, strict=True):
            if query.state in (None, card["state"]):
                found.append(card)
            if len(found) == query.limit:
                return {"threads": found, "next": _shown(record.changed)}
        cursor = page.cursor
        if cursor is None:
            break
    return {"threads": found, "next": _shown(cursor)}


def _listing(query: CardsQuery, cursor: int | None) -> ThreadsQuery:
    return ThreadsQuery(
        kind=query.kind,
        owner=query.owner,
        agent=query.agent,
        prefix=query.prefix,
        limit=query.limit,
        after=cursor,
    )


def _shown(cursor: int | None) -> str | None:
    return None if cursor is None else str(cursor)


class ThreadQuery(msgspec.Struct, frozen=True, kw_only=True):
    """One thread, by its name."""

    thread: str


async def thread_document(
    context: Context, query: ThreadQuery, showing: Showing
) -> dict[str, Any]:
    """One card, with the family of the thread."""
    record = await context.get_thread(query.thread)
    members = await family.family(context, query.thread)
    [card] = await cards_of(context, [record], showing)
    shown = [_member(member, showing) for member in members]
    return {**card, "family": shown}


def _member(thread: ThreadRecord, showing: Showing) -> dict[str, Any]:
    origin, head = thread.forked_from, thread.head
    return {
        "id": thread.id,
        "kind": thread.kind,
        "head": head.id if head else None,
        "step": head.step if head else 0,
        "label": showing.name(head.label) if head else None,
        "forked_from": origin._asdict() if origin else None,
        "updated_at": iso(thread.updated_at),
    }


async def cards_of(
    context: Context, records: Sequence[ThreadRecord], showing: Showing
) -> list[dict[str, Any]]:
    """The cards of some threads, in a few requests for all of them."""
    waits = await waits_of(context, records)
    heads = [record.head for record in records if record.head]
    last = await _last(context, heads)
    sizes = await _family_sizes(context, records)
    context = await prefetched(context, records, (TITLE, RUN))
    cards: list[dict[str, Any]] = []
    for record, waiting in zip(records, waits, strict=True):
        said = last.get(record.head.id) if record.head else None
        known = _Known(record, waiting, said, sizes[record.family])
        cards.append(await _card(context, known, showing))
    return cards


class _Known(msgspec.Struct, frozen=True):
    """The records that a card is made from."""

    record: ThreadRecord
    waits: ThreadWaits
    last: object
    members: int


async def _last(context: Context, heads: Sequence[Checkpoint]) -> dict[str, object]:
    try:
        found = await last_messages(context, heads)
    except Corrupt:
        return {}  # the other fields of the cards can still be read
    return {head.id: m for head, m in zip(heads, found, strict=True)}


async def _family_sizes(
    context: Context, records: Sequence[ThreadRecord]
) -> Mapping[int, int]:
    families = tuple({record.family for record in records})
    sizes = dict.fromkeys(families, 0)
    if families:
        for thread in await context.backend.scan(FamilyThreads(families)):
            if thread.kind != PIN and thread.deleted_at is None:
                sizes[thread.family] += 1
    return sizes


async def _card(context: Context, known: _Known, showing: Showing) -> dict[str, Any]:
    record, head = known.record, known.record.head
    values = await read_listed(context, record, _values) or {}
    spent = spent_in_run(values.get(RUN))
    state, reason = state_of(known.record, known.waits, known.last, context.clock())
    origin = record.forked_from
    return {
        "id": record.id,
        "title": _title(record, values, showing),
        "kind": record.kind,
        "owner": showing.name(record.owner),
        "agent": showing.name(record.agent),
        "state": state,
        "waiting": showing.name(reason),
        "last": _said(known.last, showing),
        "steps": head.step if head else 0,
        **msgspec.structs.asdict(spent if spent.tokens else Spent()),
        "size": head.size if head else 0,
        "forks": max(known.members - 1, 0),
        "head": head.id if head else None,
        "updated_at": iso(record.updated_at),
        "created_at": iso(record.created_at),
        "forked_from": origin._asdict() if origin else None,
    }


async def _values(context: Context, record: ThreadRecord) -> dict[str, Any]:
    if record.head is None:
        return {}
    return await read_values_of(context, record.head, TITLE, RUN)


def _title(record: ThreadRecord, values: Mapping[str, Any], showing: Showing) -> str:
    found = values.get(TITLE, record.metadata.get(TITLE))
    return showing.line(found) if found and isinstance(found, str) else record.id


def _said(message: object, showing: Showing) -> dict[str, str] | None:
    if message is None:
        return None
    return {"role": role_of(message), "text": showing.line(one_line_text(message))}


def state_of(
    record: ThreadRecord, waits: ThreadWaits, last: object, now: int
) -> tuple[State, str | None]:
    """The state of a thread, and what it waits for if it is ``waiting``."""
    is_recent = now - record.updated_at < RECENT
    asked = _asked(waits)
    if asked is not None:
        return "waiting", asked
    if record.head is not None and is_error(record.head, last):
        return "failed", None
    if is_recent and (waits or _is_unfinished(last)):
        return "working", None
    reason = _left_over(waits, last)
    return ("waiting", reason) if reason else ("done", None)


def _asked(waits: ThreadWaits) -> str | None:
    """The decision that a person has to make, ``None`` if there is none."""
    if waits.interrupts:
        return f"an answer: {waits.interrupts[0].value}"
    return "a decision about a paused run" if waits.paused_run else None


def _left_over(waits: ThreadWaits, last: object) -> str | None:
    """The first thing that a stopped program left undone, ``None`` if there is none."""
    if waits.calls:
        tools = ", ".join(dict.fromkeys(call.tool for call in waits.calls))
        return f"the outcome of {tools}, which began and did not end"
    if waits.unsaved:
        return f"a checkpoint of {waits.unsaved} messages"
    return "a reply to the last message" if _is_unfinished(last) else None


def _is_unfinished(last: object) -> bool:
    return last is not None and (role_of(last) != "assistant" or bool(calls_of(last)))
