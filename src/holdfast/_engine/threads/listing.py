"""Reading across threads: listing them, any checkpoint by id, the feed."""

from __future__ import annotations

import msgspec

from holdfast._engine.context import Context
from holdfast._engine.threads.lineage import only_match
from holdfast._engine.threads.load import load_any
from holdfast._port import Matches, Threads
from holdfast._values.records import (
    PIN,
    Change,
    Checkpoint,
    Page,
    ThreadRecord,
    check_cursor,
    checked_limit,
)
from holdfast._values.reference import Named, parse
from holdfast.errors import Unstorable

CHUNK = 200


class ThreadsQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which threads to list; ``metadata`` are items that a thread must have."""

    kind: str | None = None
    owner: str | None = None
    agent: str | None = None
    prefix: str | None = None
    metadata: dict[str, object] | None = None
    limit: int | None = 100
    after: int | None = None


async def threads(context: Context, query: ThreadsQuery) -> Page[ThreadRecord]:
    """The threads that were saved to, last used first."""
    checked_limit(query.limit)
    if not query.metadata:
        return await context.backend.scan(_scan(query, query.after, query.limit))
    found: list[ThreadRecord] = []
    after = query.after
    while True:
        page = await context.backend.scan(_scan(query, after, CHUNK))
        for thread in page:
            if query.metadata.items() <= thread.metadata.items():
                found.append(thread)
            if len(found) == query.limit:
                return Page(tuple(found), thread.changed)
        after = page.cursor
        if after is None:
            return Page(tuple(found))


def _scan(query: ThreadsQuery, after: int | None, limit: int | None) -> Threads:
    return Threads(
        kind=query.kind,
        without=PIN if query.kind is None else None,
        owner=query.owner,
        agent=query.agent,
        prefix=query.prefix,
        after=after,
        limit=limit,
    )


async def get(context: Context, reference: str) -> Checkpoint:
    """The checkpoint with an id or a unique beginning of one, in any thread."""
    parsed = parse(reference)
    if not isinstance(parsed, Named):
        raise Unstorable("reference", f"{reference!r} needs a thread; ask the thread")
    matches = await context.backend.scan(Matches(prefix=parsed.id, limit=11))
    exact = [match for match in matches if match.id == parsed.id]
    return only_match(exact or list(matches), parsed.id)


async def load(context: Context, checkpoint: Checkpoint | str) -> object:
    """The state of a checkpoint of any thread."""
    if not isinstance(checkpoint, Checkpoint):
        checkpoint = await get(context, checkpoint)
    return await load_any(context, checkpoint)


async def changes(
    context: Context, after: int, limit: int, timeout: float
) -> Page[Change]:
    """The changes after a cursor, in commit order."""
    checked_limit(limit)
    check_cursor(after)
    return await context.backend.changes(after, limit, timeout)
