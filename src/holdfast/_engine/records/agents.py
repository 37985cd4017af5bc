"""Agents, each kept in a thread: saving, loading, listing, deleting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast._engine.cache import OpenedCheckpoint
from holdfast._engine.context import Context
from holdfast._engine.records.conversations import KIND as CONVERSATION
from holdfast._engine.records.conversations import PREFIX as CONVERSATIONS
from holdfast._engine.threads import removal
from holdfast._engine.threads.drafts import AmendDraft, Amendment, read_values_of
from holdfast._engine.threads.lineage import Reference
from holdfast._engine.threads.listing import read_threads
from holdfast._engine.threads.load import loaded, read_listed, state_of
from holdfast._engine.threads.save import Options, seen
from holdfast._engine.threads.save import save as save_thread
from holdfast._messages.fields import from_values, to_values
from holdfast._messages.loose import fields_of
from holdfast._port import Start, Threads
from holdfast._values.arguments import checked_instance
from holdfast._values.records import (
    LONGEST_NAME,
    SEPARATOR,
    Page,
    ThreadRecord,
    checked_limit,
    checked_name,
)
from holdfast._values.reference import HEAD
from holdfast.agents import ABOUT_THREAD, Agent
from holdfast.errors import NotFound

KIND = "agent"
PREFIX = "agent:"
CHUNK = 200


def thread_of(id_: object) -> str:
    """The name of the thread that keeps an agent."""
    return PREFIX + checked_agent(id_)


def checked_agent(id_: object) -> str:
    """The id of an agent, if it is short enough for the names of all its threads."""
    return checked_name(id_, "agent id", LONGEST_NAME - len("checkpoints:"))


def missing(id_: str) -> NotFound:
    """The error for an agent that does not exist."""
    text = f"agent {id_!r} does not exist; save it first, or see agents.list()"
    return NotFound(text, thread=PREFIX + id_)


async def save(context: Context, agent: Agent) -> Agent:
    """Save an agent on the checkpoint it was loaded from."""
    checked_instance(agent, Agent, "agent")
    agent.id = agent.id or context.new_id()
    plain, now = to_values(agent, without=ABOUT_THREAD), context.clock()

    def everything(before: dict[str, Any] | None) -> Amendment:
        created = agent.created_at or (before or {}).get("created_at", now)
        return Amendment(plain | {"created_at": created}, whole=True)

    # The agent's own thread has the agent's id too, so that one query lists all
    # threads of an agent.
    start = Start(kind=KIND, agent=checked_agent(agent.id), anew=True)
    thread = thread_of(agent.id)
    expect = await seen(context, thread, agent.checkpoint)
    how = Options(expect=expect, start=start)
    draft = AmendDraft(("created_at",), everything)
    saved = await save_thread(context, thread, draft, how)
    values = await read_values_of(context, saved, "created_at")
    agent.created_at = values["created_at"]
    agent.checkpoint, agent.version = saved.id, saved.step
    agent.updated_at = saved.saved_at
    return agent


async def load(context: Context, id_: str, reference: Reference = HEAD) -> Agent:
    """An agent as it was at a checkpoint."""
    try:
        found = await loaded(context, thread_of(id_), reference)
    except NotFound:
        if await context.find_thread(thread_of(id_)) is None:
            raise missing(id_) from None
        raise
    return from_values(
        Agent,
        found.values,
        id=id_,
        updated_at=found.checkpoint.saved_at,
        version=found.checkpoint.step,
        active_conversations=await _active(context, id_),
        checkpoint=found.checkpoint.id,
    )


async def find(context: Context, id_: str) -> Agent | None:
    """An agent, ``None`` if there is none."""
    try:
        return await load(context, id_)
    except NotFound:
        return None


async def _active(context: Context, id_: str) -> tuple[str, ...]:
    """The ids of an agent's conversations that are not archived, last used first."""
    page = await context.backend.scan(Threads(kind=CONVERSATION, agent=id_))
    archived = [await read_listed(context, record, _is_archived) for record in page]
    return tuple(
        record.id.removeprefix(CONVERSATIONS)
        for record, away in zip(page, archived, strict=True)
        if away is False
    )


async def _is_archived(context: Context, record: ThreadRecord) -> bool:
    assert record.head is not None
    values = await read_values_of(context, record.head, "archived")
    return bool(values.get("archived"))


async def list_agents(
    context: Context, type_: str | None, limit: int | None, after: int | None
) -> Page[Agent]:
    """Agents, last used first; their active conversations are left out."""
    checked_limit(limit)
    scan = Threads(kind=KIND, after=after, limit=min(limit or CHUNK, CHUNK))

    async def matching(context: Context, record: ThreadRecord) -> Agent | None:
        if SEPARATOR in record.id:
            return None  # it is known by its id in its scope only
        agent = await listed(context, record)
        return agent if type_ in (None, agent.type) else None

    return await read_threads(context, scan, limit, matching, None)


async def listed(context: Context, record: ThreadRecord) -> Agent:
    """The agent of a thread, without its active conversations."""
    head = record.head
    assert head is not None
    state = await state_of(context, OpenedCheckpoint.of(head))
    # A program may have saved anything to the thread: that hides no other agent.
    return from_values(
        Agent,
        fields_of(state),
        id=record.id.removeprefix(PREFIX),
        updated_at=head.saved_at,
        version=head.step,
        checkpoint=head.id,
    )


async def delete(context: Context, ids: Sequence[str]) -> int:
    """Delete agents with their conversations and checkpoints; returns how many."""
    checked = dict.fromkeys(checked_agent(id_) for id_ in ids)
    return sum([await _delete(context, id_) for id_ in checked])


async def _delete(context: Context, id_: str) -> int:
    own, existed = thread_of(id_), 0
    # Repeated, since a conversation may be created while others are deleted.
    while True:
        query = Threads(agent=checked_agent(id_), every=True)
        found = await context.backend.scan(query)
        names = [record.id for record in found if record.deleted_at is None]
        if not names:
            return existed
        existed |= own in names
        await removal.delete_threads(context, names)
