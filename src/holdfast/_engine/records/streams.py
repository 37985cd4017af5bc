"""Streams over threads: appending events, and reading them after a cursor.

The events of a stream are the list ``events`` of its thread. They are numbered without
a gap; ``first`` and ``last`` are the numbers of the first that is left and of the last
that was appended. The first number of all is the time at which the stream began, so
that a stream which begins again after it was deleted has other numbers.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

import msgspec
import orjson

from holdfast._engine.cache import OpenedCheckpoint
from holdfast._engine.context import Context
from holdfast._engine.threads.drafts import ListsDraft, NextState, StateTexts
from holdfast._engine.threads.journal import find_entry
from holdfast._engine.threads.save import Options
from holdfast._engine.threads.save import save as save_thread
from holdfast._port import Start, Threads
from holdfast._values import codec
from holdfast._values.list_tail import elements_of
from holdfast._values.manifest import Manifest, Value, decode_manifest
from holdfast._values.records import (
    LONGEST_NAME,
    Checkpoint,
    ThreadRecord,
    checked_limit,
    checked_name,
)
from holdfast._values.rope import Blocks, Rope
from holdfast._values.runs import count_segments, last_runs
from holdfast.errors import Conflict, Corrupt, FormatMismatch, NotFound, Unstorable
from holdfast.streams import Event

T = TypeVar("T")

KIND = "stream"
PREFIX = "stream:"
EVENTS, FIRST, LAST = "events", "first", "last"
# Before the key of an event in the journal of its stream.
ENTRY = "event:"
_CURSOR = re.compile(r"[0-9a-f]{14}")
# How many segments are read at once.
MOST_SEGMENTS = 256


def thread_of(name: object) -> str:
    """The name of the thread that keeps a stream."""
    return PREFIX + checked_name(name, "stream name", LONGEST_NAME - len(PREFIX))


def cursor_of(number: int) -> str:
    """The cursor of an event; of a later event it is a greater text."""
    return f"{number:014x}"


def number_of(cursor: object, what: str) -> int:
    """The number of the event that a cursor stands for."""
    if not isinstance(cursor, str) or not _CURSOR.fullmatch(cursor):
        raise Unstorable(what, f"must be the cursor of an event, not {cursor!r}")
    return int(cursor, 16)


class Span(msgspec.Struct, frozen=True):
    """The numbers of a stream's first and last event, and where its events are."""

    first: int
    last: int
    events: Value

    @classmethod
    def of(cls, thread: str, manifest: Manifest) -> Span:
        """The span of a checkpoint; `FormatMismatch` if it is not a stream's."""
        values = manifest.values
        try:
            first, last = (int(cast("bytes", values[n])) for n in (FIRST, LAST))
            return cls(first, last, values[EVENTS])
        except (KeyError, TypeError, ValueError):
            text = f"thread {thread!r} is not a stream; save to it as to a thread"
            raise FormatMismatch(text) from None


# --- appending ------------------------------------------------------------------------


class EventDraft:
    """An event to append; ``number`` is known when it was planned."""

    def __init__(self, thread: str, event: object, key: str | None) -> None:
        self.thread = thread
        self.text = codec.encode(event, "event")
        self.key = None if key is None else checked_key(key)
        self.number = 0

    @property
    def cursor(self) -> str:
        return cursor_of(self.number)

    async def plan(
        self, context: Context, parent: OpenedCheckpoint | None, blocks: Blocks
    ) -> NextState:
        span, now = None, context.clock()
        if parent is not None:
            span = Span.of(self.thread, parent.manifest)
        # A clock may begin with zero, which is no event's number.
        self.number = span.last + 1 if span else max(now, 1)
        plan = await _Encoded(self._record(now)).plan(context, parent, blocks)
        if span is None:
            plan.values[FIRST] = b"%d" % self.number
        plan.values[LAST] = b"%d" % self.number
        if self.key is not None:
            plan.once = ((ENTRY + self.key, b"%d" % self.number),)
        return plan

    def _record(self, at: int) -> bytes:
        key = b"" if self.key is None else b',"key":%b' % orjson.dumps(self.key)
        head = b'"number":%d,"at":%d%b' % (self.number, at, key)
        return b'{%b,"event":%b}' % (head, self.text)

    def matches(self, stored: StateTexts, before: StateTexts | None) -> bool:
        del stored, before  # no two appends have the same id
        return False


class _Encoded(ListsDraft):
    """One event that has been encoded already."""

    def __init__(self, record: bytes) -> None:
        self.additions = {EVENTS: record}


def checked_key(key: object) -> str:
    """The key of an event."""
    return checked_name(key, "key", LONGEST_NAME - len(ENTRY))


def appending(start: Start) -> Options:
    """The options of a save that appends an event."""
    return Options(start=start, kind="append")


async def append(context: Context, thread: str, draft: EventDraft, start: Start) -> str:
    """Append an event; the cursor of it, or of the first event with its key."""
    how = appending(start)
    while True:
        try:
            await save_thread(context, thread, draft, how)
        except Conflict as conflict:
            if conflict.code != "entry_taken" or draft.key is None:
                raise
            taken = await find_entry(context, thread, ENTRY + draft.key)
            if taken is not None:  # otherwise its event was trimmed just now
                return cursor_of(cast("int", taken.value))
        else:
            return draft.cursor


# --- reading --------------------------------------------------------------------------


async def events(
    context: Context, thread: str, after: str | None, limit: int | None
) -> list[Event]:
    """The events after a cursor, oldest first."""
    checked_limit(limit)
    wanted = None if after is None else number_of(after, "after")

    async def read(head: Checkpoint | None) -> list[Event]:
        if head is None:
            if wanted is not None:
                raise _gone(thread, "does not exist")
            return []
        span = Span.of(thread, decode_manifest(head))
        seen = _checked(thread, span, wanted)
        return await _after(context, head.family, span, seen, limit)

    return await while_current(context, thread, read)


async def last(context: Context, thread: str) -> str | None:
    """The cursor of the last event, ``None`` before the first."""
    record = await context.find_thread(thread)
    if record is None or record.head is None:
        return None
    return cursor_of(Span.of(thread, decode_manifest(record.head)).last)


async def last_change(context: Context) -> int:
    """The number of the newest change of the store, for waiting for the next."""
    found = await context.backend.scan(Threads(every=True, limit=1))
    return found[0].changed if found else 0


async def while_current(
    context: Context, thread: str, read: Callable[[Checkpoint | None], Awaitable[T]]
) -> T:
    """Read something of a head; again, if it was removed while it was read."""
    head = _head(await context.find_thread(thread))
    while True:
        try:
            return await read(head)
        except Corrupt:
            before, head = head, _head(await context.find_thread(thread))
            if (before and before.seq) == (head and head.seq):
                raise


def _head(record: ThreadRecord | None) -> Checkpoint | None:
    return record.head if record else None


def _checked(thread: str, span: Span, wanted: int | None) -> int:
    """The number of the event to read after; refuses one that would leave a gap."""
    if wanted is None:
        return span.first - 1
    if wanted < span.first - 1:
        raise _gone(thread, "no longer has all events after this cursor")
    if wanted > span.last:
        raise NotFound(
            f"stream {_name(thread)!r} has no event with this cursor; it is of another"
            " stream, or an older copy of the store was put back: read from the"
            " beginning, with after=None",
            code="event_unknown",
            thread=thread,
        )
    return wanted


def _gone(thread: str, what: str) -> NotFound:
    return NotFound(
        f"stream {_name(thread)!r} {what}; read what is left with after=None, and take"
        " what was missed from where the events come from",
        code="events_gone",
        thread=thread,
    )


def _name(thread: str) -> str:
    return thread.removeprefix(PREFIX)


class Segments:
    """Reads the segments of a stream, some at a time."""

    def __init__(self, context: Context, family: int, rope: Rope) -> None:
        self.context, self.family, self.rope = context, family, rope
        self.count = count_segments(rope.runs)

    async def read(self, start: int, size: int) -> list[bytes]:
        """The bytes of segments, or of those that there are."""
        size = min(size, self.count - start)
        runs = last_runs(self.rope.runs, self.count - start - size, size)
        found = await self.context.backend.segments(self.family, runs)
        return [segment.data for segment in found]


async def _after(
    context: Context, family: int, span: Span, seen: int, limit: int | None
) -> list[Event]:
    """The events of a span behind a number."""
    if not isinstance(span.events, Rope):
        return _behind(seen, stored_in(span.events[1:-1]))[:limit]
    segments = Segments(context, family, span.events)
    size = MOST_SEGMENTS if limit is None else min(limit, MOST_SEGMENTS)
    found: list[Event] = []
    # Every segment has an event or more, so the first that is wanted does not stand
    # before this place. Hardly any segment has two.
    place = max(0, segments.count - (span.last - seen))
    while place < segments.count and (limit is None or len(found) < limit):
        for part in await segments.read(place, size):
            found += _behind(seen, stored_in(part))
        place += size
    return found[:limit]


def stored_in(part: bytes) -> list[dict[str, Any]]:
    """The events of a segment as they are stored."""
    found = elements_of(part)
    if found is None:
        raise Corrupt("a stored stream", "a segment does not hold whole events")
    return cast("list[dict[str, Any]]", found)


def _behind(seen: int, stored: list[dict[str, Any]]) -> list[Event]:
    return [
        Event(
            cursor=cursor_of(item["number"]),
            value=item["event"],
            at=item["at"],
            key=item.get("key"),
        )
        for item in stored
        if item["number"] > seen
    ]
