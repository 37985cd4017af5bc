"""Handles on one stream of a store, for the sync and the async API."""

from __future__ import annotations

import time
from datetime import timedelta

from holdfast._api.runner import AsyncRunner, Runner
from holdfast._api.wrong_api import awaited_property
from holdfast._engine.records import streams
from holdfast._engine.records.streams import EventDraft, thread_of
from holdfast._engine.threads import listing, removal
from holdfast._engine.upkeep import trim
from holdfast._engine.upkeep.trim import TrimRule
from holdfast._port import Start
from holdfast._values.arguments import checked_seconds
from holdfast._values.records import Change, Page
from holdfast.streams import Event

PAGE = 1000
# Seconds after which a waiting caller looks at its stream although no change was
# reported: on PostgreSQL a commit may be reported late.
LOOK_AGAIN = 1.0


class Stream:
    """A log of events; `Store.stream` makes it.

    Every process that opened the store can append and read. All see the events in the
    same order, each once and without a gap. A stream is the thread ``stream:<name>``
    (``id``), and begins with its first event.
    """

    def __init__(self, runner: Runner, name: str, start: Start) -> None:
        self._runner = runner
        self._start = start
        self.name = name
        self.id = thread_of(name)

    def __repr__(self) -> str:
        return f"Stream({self.name!r})"

    def append(self, event: object, *, key: str | None = None) -> str:
        """Append an event, durable when this returns; gives its cursor.

        With a ``key``, an event is appended once: if the stream has an event with the
        same key, nothing is appended and the cursor of that event is returned. It costs
        what the event costs, however many there are.
        """
        draft = EventDraft(self.id, event, key)
        return self._runner.save(streams.append, self.id, draft, self._start)

    def events(
        self, after: str | None = None, *, limit: int | None = 100
    ) -> list[Event]:
        """The events after a cursor, oldest first; without one, from the beginning.

        It costs what they cost. If events after the cursor were trimmed, or the stream
        was deleted, `NotFound` is raised with the code ``events_gone``: to go on would
        leave a gap.
        """
        return self._runner.run(streams.events, self.id, after, limit)

    def wait(
        self,
        after: str | None = None,
        *,
        limit: int | None = 100,
        timeout: float = 30.0,
    ) -> list[Event]:
        """Like `events`, but waits while there are none; empty after ``timeout``.

        Events of other processes end the waiting, too.
        """
        watch = _Watch(self.id, timeout, self._runner.run(streams.last_change))
        found = self.events(after, limit=limit)
        while not found and (left := watch.left()) > 0:
            page = self._runner.run(listing.changes, watch.seen, PAGE, left)
            if watch.is_due(page):
                found = self.events(after, limit=limit)
        return found

    @property
    def last(self) -> str | None:
        """The cursor of the last event that was appended, ``None`` before the first."""
        return self._runner.run(streams.last, self.id)

    def trim(
        self,
        *,
        before: str | None = None,
        last: int | None = None,
        older: timedelta | None = None,
    ) -> int:
        """Remove the oldest events for good; returns how many.

        Removed are the events ``before`` the one with a cursor, all but the ``last`` n,
        or those ``older`` than an age. The cursors of the other events stay valid, and
        no cursor is used again. The keys of removed events are forgotten: the same key
        can be appended once more.
        """
        rule = TrimRule(before=before, last=last, older=older)
        return self._runner.run(trim.trim, self.id, rule)

    def delete(self) -> bool:
        """Delete the stream with all its events; true if there was one.

        Late writers are refused, with `Conflict` and the code ``thread_deleted``,
        unless their handle was made with ``anew``.
        """
        return self._runner.run(removal.delete_threads, [self.id]) > 0


class AsyncStream:
    """Like `Stream`, awaited."""

    def __init__(self, runner: AsyncRunner, name: str, start: Start) -> None:
        self._runner = runner
        self._start = start
        self.name = name
        self.id = thread_of(name)

    def __repr__(self) -> str:
        return f"AsyncStream({self.name!r})"

    async def append(self, event: object, *, key: str | None = None) -> str:
        draft = EventDraft(self.id, event, key)
        return await self._runner.save(streams.append, self.id, draft, self._start)

    async def events(
        self, after: str | None = None, *, limit: int | None = 100
    ) -> list[Event]:
        return await self._runner.run(streams.events, self.id, after, limit)

    async def wait(
        self,
        after: str | None = None,
        *,
        limit: int | None = 100,
        timeout: float = 30.0,
    ) -> list[Event]:
        watch = _Watch(self.id, timeout, await self._runner.run(streams.last_change))
        found = await self.events(after, limit=limit)
        while not found and (left := watch.left()) > 0:
            page = await self._runner.poll(listing.changes, watch.seen, PAGE, left)
            if watch.is_due(page):
                found = await self.events(after, limit=limit)
        return found

    @awaited_property
    async def last(self) -> str | None:
        return await self._runner.run(streams.last, self.id)

    async def trim(
        self,
        *,
        before: str | None = None,
        last: int | None = None,
        older: timedelta | None = None,
    ) -> int:
        rule = TrimRule(before=before, last=last, older=older)
        return await self._runner.run(trim.trim, self.id, rule)

    async def delete(self) -> bool:
        return await self._runner.run(removal.delete_threads, [self.id]) > 0


class _Watch:
    """The deadline of a waiting caller, and when it looks at its stream again.

    ``seen`` is the last change of the store that it knows.
    """

    def __init__(self, thread: str, timeout: float, seen: int) -> None:
        self._thread = thread
        self._looked = time.monotonic()
        self._deadline = self._looked + checked_seconds(timeout, "timeout")
        self.seen = seen

    def left(self) -> float:
        """The number of seconds to wait for the next change."""
        return min(LOOK_AGAIN, self._deadline - time.monotonic())

    def is_due(self, page: Page[Change]) -> bool:
        """Take note of changes; true if the stream may have new events."""
        self.seen = self.seen if page.cursor is None else page.cursor
        now = time.monotonic()
        is_ours = any(change.thread == self._thread for change in page)
        if not is_ours and now - self._looked < LOOK_AGAIN:
            return now >= self._deadline
        self._looked = now
        return True
