"""Statistics of a whole store, and the threads that take the most space."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from holdfast._engine.context import Context
from holdfast._engine.records import agent_checkpoints, agents, conversations, documents
from holdfast._engine.threads.load import read_listed
from holdfast._port import Facts, Kinds, SavedIn, Threads, Totals, Weight, Weights
from holdfast._values.manifest import WHOLE, decode_manifest
from holdfast._values.records import PIN, ThreadRecord, checked_limit
from holdfast._values.rope import Rope

CHUNK = 500


class Statistics(Facts, frozen=True, kw_only=True):
    """Counts and sizes of a store, equal on every backend but for ``file_bytes``.

    ``logical_bytes`` is what whole-state saving would have written, ``stored_bytes``
    what the states take as they are stored, ``file_bytes`` what the files take.
    ``threads`` are those that are listed: the pins of agents' checkpoints are not.
    """

    agents: int
    conversations: int
    messages: int
    documents: int
    agent_checkpoints: int


# The path to the number of messages in the manifest of a conversation's head.
MESSAGES = ("mapping", "counts", 1, "messages")


async def statistics(context: Context) -> Statistics:
    """Count everything; the messages as the heads of the conversations count them."""
    kinds = await threads_by_kind(context)
    facts = await listed_facts(context, kinds)
    [checkpoints] = await context.backend.scan(SavedIn(kind=agent_checkpoints.KIND))
    return Statistics(
        **msgspec.structs.asdict(facts),
        agents=kinds.get(agents.KIND, 0),
        conversations=kinds.get(conversations.KIND, 0),
        messages=await _messages(context),
        documents=kinds.get(documents.KIND, 0),
        agent_checkpoints=checkpoints,
    )


async def threads_by_kind(context: Context) -> dict[str, int]:
    """The number of threads of each kind."""
    return {found.kind: found.threads for found in await context.backend.scan(Kinds())}


async def listed_facts(context: Context, kinds: Mapping[str, int]) -> Facts:
    """The counts of a backend, but of the threads only those that are listed."""
    facts = await context.backend.facts()
    return replace(facts, threads=facts.threads - kinds.get(PIN, 0))


async def _messages(context: Context) -> int:
    """Most counts stand in the manifests; a long one has to be read."""
    totals = await context.backend.scan(Totals(kind=conversations.KIND, path=MESSAGES))
    if not totals:
        return await _all_messages(context)
    [total] = totals
    found = [await context.find_thread(name) for name in total.without]
    heads = [record for record in found if record is not None and record.head]
    return total.sum + sum([await _counted(context, record) for record in heads])


async def _all_messages(context: Context) -> int:
    messages, query = 0, Threads(kind=conversations.KIND, limit=CHUNK)
    while True:
        page = await context.backend.scan(query)
        messages += sum([await _counted(context, record) for record in page])
        if page.cursor is None:
            return messages
        query = replace(query, after=page.cursor)


async def _counted(context: Context, record: ThreadRecord) -> int:
    return await read_listed(context, record, _tallied) or 0


async def _tallied(context: Context, record: ThreadRecord) -> int:
    assert record.head is not None
    return (await conversations.tally_at(context, record.head)).messages


class Heavy(msgspec.Struct, frozen=True):
    """The threads of a family, and the space they take together.

    ``logical_bytes`` is what whole-state saving would have written, ``stored_bytes``
    what is stored; ``values`` are the bytes of the values of all heads, by name. What
    the checkpoints of agents keep of a thread is named only where the thread is gone.
    """

    threads: tuple[str, ...]
    checkpoints: int
    logical_bytes: int
    stored_bytes: int
    values: dict[str, int]


async def heaviest(context: Context, limit: int | None) -> tuple[Heavy, ...]:
    """The threads that take the most space, together with their forks."""
    checked_limit(limit)
    weights = await context.backend.scan(Weights(limit=limit))
    return tuple([await _heavy(context, weight) for weight in weights])


async def _heavy(context: Context, weight: Weight) -> Heavy:
    query = Threads(family=weight.family, every=True)
    living = [t for t in await context.backend.scan(query) if t.deleted_at is None]
    threads = [t for t in living if t.kind != PIN] or living
    return Heavy(
        threads=tuple(t.id for t in sorted(threads, key=lambda t: t.number)),
        checkpoints=weight.checkpoints,
        logical_bytes=weight.logical_bytes,
        stored_bytes=weight.stored_bytes,
        values=_values(threads),
    )


def _values(threads: list[ThreadRecord]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for head in (thread.head for thread in threads if thread.head is not None):
        for name, value in decode_manifest(head).values.items():
            size = value.size if isinstance(value, Rope) else len(value)
            shown = name if name != WHOLE else "(root)"
            sizes[shown] = sizes.get(shown, 0) + size
    return dict(sorted(sizes.items(), key=lambda item: (-item[1], item[0])))
