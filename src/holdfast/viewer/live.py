"""Tells browsers what changes, as server-sent events.

One task asks the store for all browsers together, and only while one is connected.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import orjson
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from holdfast._api.store import AsyncStore
from holdfast._engine.context import Context
from holdfast._port import Threads
from holdfast._values.records import Change
from holdfast.errors import HoldfastError, Unstorable
from holdfast.views.documents import iso

# Seconds between two looks at the store, and after a failed one.
PAUSE, RETRY = 0.2, 2.0
# Seconds after which a line without content shows that the connection is alive.
HEARTBEAT = 15.0
PAGE = 500
# The digits of the largest number that a change can have.
LONGEST_ID = 19
# The changes whose subject is a checkpoint; others name entries of the journal.
_RECORDED = "record"


async def last_change(context: Context) -> int:
    """The sequence number of the newest change."""
    found = await context.backend.scan(Threads(every=True, limit=1))
    return found[0].changed if found else 0


class LiveFeed:
    """The changes of a store, for any number of browsers."""

    def __init__(self, store: AsyncStore) -> None:
        self._store = store
        self._readers = 0
        self._watcher: asyncio.Task[None] | None = None
        self._news = asyncio.Condition()
        self._latest = 0
        self._problem: HoldfastError | None = None

    async def endpoint(self, request: Request) -> Response:
        """A stream that begins after a change, or with the next one."""
        given = _given(request)
        newest = await self._store.runner.run(last_change)
        # Beyond the newest change if the store was put back since: the browser loads
        # its lists again when it reconnects, and goes on from what the store has.
        after = newest if given is None else min(given, newest)
        return StreamingResponse(
            self._events(after, newest),
            media_type="text/event-stream",
            headers={"cache-control": "no-store", "x-accel-buffering": "no"},
        )

    async def _events(self, after: int, newest: int) -> AsyncIterator[bytes]:
        self._join(newest)
        try:
            yield b": connected\nid: %d\n\n" % after
            while True:
                page = await self._read(after)
                for change in page:
                    after = change.seq
                    yield _event(change)
                if not page and not await self._wait(after):
                    yield self._silence()
        finally:
            self._leave()

    async def _read(self, after: int) -> list[Change]:
        try:
            return list(await self._store.changes(after, limit=PAGE))
        except HoldfastError as error:
            self._problem = error
            return []

    async def _wait(self, after: int) -> bool:
        """Wait for something after a change; true if it came in time."""

        def is_new() -> bool:
            return self._latest > after or self._problem is not None

        async with self._news:
            try:
                await asyncio.wait_for(self._news.wait_for(is_new), HEARTBEAT)
            except TimeoutError:
                return False
        return self._problem is None

    def _silence(self) -> bytes:
        """A heartbeat, or what keeps the store from being read."""
        problem, self._problem = self._problem, None
        if problem is None:
            return b": alive\n\n"
        told = {"error": {"code": problem.code, "message": str(problem)}}
        return b"event: problem\ndata: %b\n\n" % orjson.dumps(told)

    # --- the task that looks at the store ---------------------------------------------

    def _join(self, newest: int) -> None:
        self._readers += 1
        if self._watcher is None:
            self._latest = newest
            self._watcher = asyncio.create_task(self._watch())

    def _leave(self) -> None:
        self._readers -= 1
        if self._readers == 0 and self._watcher is not None:
            self._watcher.cancel()
            self._watcher = None

    async def _watch(self) -> None:
        while True:
            pause = PAUSE
            try:
                page = await self._store.changes(self._latest, limit=PAGE)
            except HoldfastError as error:
                self._problem, pause, page = error, RETRY, None
            if page or self._problem is not None:
                async with self._news:
                    if page:
                        self._latest = page[-1].seq
                    self._news.notify_all()
            await asyncio.sleep(pause)


def _given(request: Request) -> int | None:
    """The change after which a browser goes on, ``None`` if it has seen none."""
    last = request.headers.get("last-event-id")
    given = request.query_params.get("after") or last
    if given is None:
        return None
    if len(given) > LONGEST_ID or not (given.isascii() and given.isdecimal()):
        raise Unstorable("after", "must be the id of an event; leave it out")
    return int(given)


def _event(change: Change) -> bytes:
    is_entry = change.kind == _RECORDED
    told = {
        "seq": change.seq,
        "thread": change.thread,
        "kind": change.kind,
        "checkpoint": None if is_entry else change.subject,
        "at": iso(change.at),
    }
    return b"id: %d\nevent: change\ndata: %b\n\n" % (change.seq, orjson.dumps(told))
