"""Statistics of a whole store."""

from __future__ import annotations

from collections import Counter

import msgspec

from holdfast._engine.context import Context
from holdfast._engine.records import agent_checkpoints, agents, conversations, documents
from holdfast._engine.threads.load import read_listed
from holdfast._port import Facts, Saves, Threads
from holdfast._values.records import PIN, ThreadRecord

CHUNK = 500


class Statistics(Facts, frozen=True, kw_only=True):
    """Counts and sizes of a store, equal on every backend but for ``file_bytes``.

    ``logical_bytes`` is what whole-state saving would have written, ``stored_bytes``
    what the segments take, ``file_bytes`` what the store takes on disk.
    """

    agents: int
    conversations: int
    messages: int
    documents: int
    agent_checkpoints: int


async def statistics(context: Context) -> Statistics:
    """Count everything; the messages as the heads of the conversations count them."""
    facts = await context.backend.facts()
    kinds: Counter[str] = Counter()
    messages = checkpoints = 0
    after: int | None = None
    while True:
        query = Threads(without=PIN, after=after, limit=CHUNK)
        page = await context.backend.scan(query)
        for record in page:
            kinds[record.kind] += 1
            if record.kind == conversations.KIND:
                messages += await read_listed(context, record, _messages) or 0
            elif record.kind == agent_checkpoints.KIND:
                saves = await context.backend.scan(Saves(family=record.family))
                checkpoints += len(saves)
        after = page.cursor
        if after is None:
            break
    return Statistics(
        **msgspec.structs.asdict(facts),
        agents=kinds[agents.KIND],
        conversations=kinds[conversations.KIND],
        messages=messages,
        documents=kinds[documents.KIND],
        agent_checkpoints=checkpoints,
    )


async def _messages(context: Context, record: ThreadRecord) -> int:
    assert record.head is not None
    return (await conversations.tally_at(context, record.head)).messages
