"""Reads sessions with the state of their app and user, and lists them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from holdfast import Checkpoint
from holdfast.adapters.google_adk._events import MESSAGES, events_text
from holdfast.adapters.google_adk._names import (
    APP,
    SESSION,
    USER,
    SessionKey,
    name_of,
    parts_of,
)
from holdfast.backends import Page, ThreadKey, ThreadRecord, Threads
from holdfast.errors import NotFound
from holdfast.operations import Context, OpenedCheckpoint
from holdfast.operations.threads import (
    find_record,
    loaded,
    read_bodies,
    read_listed,
    read_values,
)
from holdfast.operations.values import HEAD

Values = dict[str, Any]


class StoredSession(msgspec.Struct, frozen=True):
    """A session as values of three threads; ``events`` if the caller asked for them."""

    key: SessionKey
    head: Checkpoint
    values: Values
    app: Values
    user: Values
    events: bytes = b"[]"


class SessionsQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A listing of sessions; with ``user`` ``None``, the sessions of all users."""

    app: str
    user: str | None = None
    limit: int | None = None
    after: int | None = None


async def find_session(
    context: Context, key: SessionKey, *, with_events: bool
) -> StoredSession | None:
    """A session, ``None`` if there is none."""
    read = _whole if with_events else _beside_events
    found = await read(context, key.thread)
    if found is None:
        return None
    head, values = found
    # The events stay text, so that the messages are freed before the events are made:
    # with both in memory the garbage collector takes as long as all the rest.
    events = events_text(values.pop(MESSAGES, []))
    app = await shared_values(context, key.app_thread)
    user = await shared_values(context, key.user_thread)
    return StoredSession(key, head, values, app, user, events)


async def shared_values(context: Context, thread: str) -> Values:
    """The values that all sessions of an app or of a user share."""
    found = await _whole(context, thread)
    return found[1] if found else {}


async def list_sessions(context: Context, query: SessionsQuery) -> Page[StoredSession]:
    """The sessions of an app or of one of its users, last used first.

    It takes a few queries, however many sessions there are, and reads no event.
    """
    within = [query.app] if query.user is None else [query.app, query.user]
    prefix = name_of(SESSION, *within, "")
    page = await context.backend.scan(
        Threads(kind=SESSION, prefix=prefix, limit=query.limit, after=query.after)
    )
    app = await shared_values(context, name_of(APP, query.app))
    keys = [SessionKey(*parts_of(record.id)) for record in page]
    users = await _user_values(context, query, keys)
    found: list[StoredSession] = []
    for record, head, values in await _values_of_each(context, page):
        key = SessionKey(*parts_of(record.id))
        user = users.get(key.user, {})
        found.append(StoredSession(key, head, values, app, user))
    return Page(tuple(found), page.cursor)


async def _user_values(
    context: Context, query: SessionsQuery, listed: Iterable[SessionKey]
) -> dict[str, Values]:
    """The values that the users of the listed sessions share, by user."""
    if query.limit is None and query.user is None:
        every = Threads(kind=USER, prefix=name_of(USER, query.app, ""))
        living = list(await context.backend.scan(every))
    else:  # only the users on the page, however many the app has
        threads = sorted({key.user_thread for key in listed})
        found = await context.backend.read([ThreadKey(name) for name in threads])
        living = [record for record in found if record and not record.deleted_at]
    read = await _values_of_each(context, living)
    return {parts_of(record.id)[1]: values for record, _, values in read}


async def _whole(context: Context, thread: str) -> tuple[Checkpoint, Values] | None:
    try:
        found = await loaded(context, thread, HEAD)
    except NotFound:
        return None
    return found.checkpoint, found.values


async def _beside_events(
    context: Context, thread: str
) -> tuple[Checkpoint, Values] | None:
    record = await find_record(context, thread)
    read = await _values_of_each(context, [record] if record else [])
    return read[0][1:] if read else None


async def _values_of_each(
    context: Context, records: Iterable[ThreadRecord]
) -> list[tuple[ThreadRecord, Checkpoint, Values]]:
    """All values but the events; small ones come with the records."""
    heads = [(record, record.head) for record in records if record.head]
    opened = {head.id: OpenedCheckpoint.of(head) for _, head in heads}
    names = {name for known in opened.values() for name in known.manifest.values}
    names.discard(MESSAGES)
    await read_bodies(context, list(opened.values()), sorted(names))

    async def read(context: Context, record: ThreadRecord) -> tuple[Checkpoint, Values]:
        assert record.head is not None
        known = opened.get(record.head.id) or OpenedCheckpoint.of(record.head)
        mine = [name for name in known.manifest.values if name != MESSAGES]
        return known.head, await read_values(context, known, mine)

    found: list[tuple[ThreadRecord, Checkpoint, Values]] = []
    for record, _ in heads:
        values = await read_listed(context, record, read)
        if values is not None:
            found.append((record, *values))
    return found
