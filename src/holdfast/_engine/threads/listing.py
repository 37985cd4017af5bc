"""Reading across threads: listing them, any checkpoint by id, the feed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from holdfast._engine.context import Context
from holdfast._engine.threads import load, prefetch
from holdfast._engine.threads.lineage import only_match
from holdfast._port import Matches, Threads
from holdfast._values import codec
from holdfast._values.arguments import checked_items, checked_mapping
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

# Up to here an equal int and float begin with the same digits.
_EXACT = 10**15
T = TypeVar("T")

CHUNK, SMALLEST = 5000, 200


class ThreadsQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A page of threads; ``metadata`` are items that a thread must have."""

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
    given = {} if query.metadata is None else query.metadata
    wanted = checked_mapping(given, "metadata").items()
    scan = Threads(
        kind=query.kind,
        without=PIN if query.kind is None else None,
        owner=query.owner,
        agent=query.agent,
        prefix=query.prefix,
        metadata=tuple(_texts_of(key, value) for key, value in wanted),
        after=query.after,
        limit=query.limit,
    )
    if not wanted:
        return await context.backend.scan(scan)

    async def matching(_: Context, thread: ThreadRecord) -> ThreadRecord | None:
        return thread if wanted <= thread.metadata.items() else None

    # A page may be a pass over all threads, so it is not a small one.
    limit = CHUNK if query.limit is None else max(query.limit, SMALLEST)
    return await read_threads(
        context, replace(scan, limit=limit), query.limit, matching
    )


async def read_threads(
    context: Context,
    scan: Threads,
    limit: int | None,
    read: Callable[[Context, ThreadRecord], Awaitable[T | None]],
    names: Sequence[str] | None = (),
) -> Page[T]:
    """The results of ``read`` for the threads of a scan, without ``None``.

    The limit of the scan is the size of its pages, and ``limit`` that of the result.
    ``names`` are the values of the states that are read, ``None`` for all.
    """
    found: list[T] = []
    while True:
        page = await context.backend.scan(scan)
        reading = await prefetch.prefetched(context, page, names)
        for record in page:
            item = await load.read_listed(reading, record, read)
            if item is not None:
                found.append(item)
            if len(found) == limit:
                return Page(tuple(found), record.changed)
        if page.cursor is None:
            return Page(tuple(found))
        scan = replace(scan, after=page.cursor)


async def get(context: Context, reference: str) -> Checkpoint:
    """The checkpoint with an id or a unique beginning of one, in any thread.

    A scope can save with any id, also with one that it has seen. So the threads of
    scopes are only looked at if no other has such an id.
    """
    parsed = parse(reference)
    if not isinstance(parsed, Named):
        raise Unstorable("reference", f"{reference!r} needs a thread; ask the thread")
    query = Matches(prefix=parsed.id, direct=True, limit=11)
    matches = await context.backend.scan(query)
    if not matches:
        matches = await context.backend.scan(replace(query, direct=False))
    exact = [match for match in matches if match.id == parsed.id]
    return only_match(exact or list(matches), parsed.id)


async def changes(
    context: Context, after: int, limit: int, timeout: float
) -> Page[Change]:
    """The changes after a cursor, in commit order."""
    untyped: int | None = limit  # of a caller who checks no types
    if checked_limit(untyped) is None:
        raise Unstorable("limit", "must be a positive number: the feed has no end")
    check_cursor(after)
    return await context.backend.changes(after or 0, limit, timeout)


async def names_of(
    context: Context, names: Iterable[str] | None, owner: str | None
) -> list[str] | None:
    """Some threads and all of an owner, by name; ``None`` if neither is given."""
    named = None if names is None else checked_items(names, "threads")
    if owner is None:
        return None if named is None else list(named)
    found = await context.backend.scan(Threads(owner=owner, without=PIN, every=True))
    living = (thread.id for thread in found if thread.deleted_at is None)
    return list(dict.fromkeys([*(named or ()), *living]))


def _texts_of(key: object, value: Any) -> tuple[bytes, ...]:
    """Texts of which one is in all metadata that have an item equal to this one.

    Other metadata may have one too: what a backend finds has to be compared. Equal
    values can be stored differently, a `Decimal` as a tagged value for example.
    """
    if type(key) is not str:
        return (codec.MARKER,)
    start = codec.encode(key) + b":"
    return *(start + text for text in _beginnings(value)), codec.MARKER


def _beginnings(value: Any) -> tuple[bytes, ...]:
    """The beginnings of the texts of all values that equal this one and have no tag."""
    if value is None or type(value) is str:
        return (codec.encode(value),)
    if type(value) not in (bool, int, float) or not abs(value) < _EXACT:
        return (b"",)
    if value == 0:
        return b"0", b"-0", b"false"
    text = codec.encode(int(value) if value == int(value) else value)
    return (text, b"true") if value == 1 else (text,)
