"""The event store: events of sessions, replayed after the last one a client saw."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Protocol, Unpack

from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp.types import (
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from starlette.types import ASGIApp

from holdfast import AsyncStream, Event, Retention
from holdfast.adapters.mcp_events._event_ids import EventId
from holdfast.adapters.mcp_events._sessions import Session, SessionScope, current
from holdfast.errors import Unstorable
from holdfast.operations import OpenOptions
from holdfast.operations.stores import StoreOrAddress, UsedStore, settled
from holdfast.operations.values import checked_name

PAGE = 100
# Seconds between the checks of a resumed connection that its session still exists.
PATIENCE = 5.0


class McpServer(Protocol):
    """A server of the SDK, of its high or low level."""

    def streamable_http_app(self, *, event_store: EventStore, **options: Any) -> Any:
        """The ASGI application that serves it."""
        ...


class HoldfastEventStore(EventStore):
    """The events of an MCP server's sessions, so that clients can resume them.

    ``store`` is a `Store` or an `AsyncStore`, or an address, which is opened with the
    options of `holdfast.open`. Use `app` to serve with it: it keeps the events of
    sessions apart. ``name`` is the beginning of the streams' names; give servers that
    share a store different ones.

    Each session keeps its last ``keep`` events, or somewhat more. While sessions store
    events, those without an event for longer than ``keep_for`` are removed.
    """

    def __init__(
        self,
        store: StoreOrAddress,
        *,
        name: str = "mcp",
        keep: int = 1000,
        keep_for: timedelta = timedelta(days=1),
        **options: Unpack[OpenOptions],
    ) -> None:
        if type(keep) is not int or keep < 1:
            raise Unstorable("keep", f"must be a number of events, not {keep!r}")
        self._name = checked_name(name, "name")
        self._keep = keep
        self._idle = Retention(idle=keep_for, kinds=("stream",))
        self._used = UsedStore(store, **options)
        # The session of events that are stored outside of any request.
        self._shared = Session("shared")

    def app(self, server: McpServer, **options: Any) -> ASGIApp:
        """The application of a server; clients can resume its sessions.

        ``server`` is an ``MCPServer`` or a low-level ``Server``, and ``options`` are
        those of its ``streamable_http_app``.
        """
        return self.sessions(server.streamable_http_app(event_store=self, **options))

    def sessions(self, app: ASGIApp) -> ASGIApp:
        """An application over this event store that keeps the events of sessions apart.

        Without it all sessions of a server share their events, which is right for a
        server with one client only.
        """
        return SessionScope(app)

    async def close(self) -> None:
        """Close the store if it was opened here."""
        await self._used.close()

    # --- what the SDK calls -----------------------------------------------------------

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        """Store an event, durable when this returns, and return its id."""
        session = current.get() or self._shared
        event = {"stream": stream_id, "message": _plain(message)}
        cursor = await settled(self._stream(session.name).append(event))
        session.stored += 1
        await self._tidy(session)
        return str(EventId(session.name, cursor, stream_id))

    async def replay_events_after(
        self, last_event_id: str, send_callback: EventCallback
    ) -> str | None:
        """Send the events after an event on its SSE stream, and return the stream's id.

        ``None`` for an id that this session never had. If events after it were trimmed,
        `NotFound` is raised: the client would not notice the gap.

        In a session it goes on until the request of the stream is answered, and returns
        ``None`` then. Otherwise the SDK would lose events that are stored between this
        return and the connection of the client to the session.
        """
        last, session = EventId.parsed(last_event_id), current.get()
        if last is None or last.session != (session or self._shared).name:
            return None
        replay = _Replay(last, send_callback)
        stream = self._stream(last.session)
        while page := await stream.events(replay.after, limit=PAGE):
            await replay.send(page)
        if session is None:
            return last.sse_stream
        while not (replay.is_answered or session.is_over):
            await replay.send(await stream.wait(replay.after, timeout=PATIENCE))
        return None

    # --- the store --------------------------------------------------------------------

    def _stream(self, session: str) -> AsyncStream:
        # A session may continue after it was removed for its silence.
        return self._used.awaited.stream(f"{self._name}:{session}", anew=True)

    async def _tidy(self, session: Session) -> None:
        """Remove old events and silent sessions, once in a while."""
        if session.stored % self._keep == 0:
            await self._stream(session.name).trim(last=self._keep)
        if session.stored % self._keep == 1 % self._keep:
            prefix = f"stream:{self._name}:"
            await self._used.awaited.prune(self._idle, prefix=prefix)


def _plain(message: JSONRPCMessage | None) -> Any:
    if message is None:
        return None
    return message.model_dump(mode="json", by_alias=True, exclude_unset=True)


class _Replay:
    """Sends the events of one SSE stream; ``after`` is the cursor of the last one."""

    def __init__(self, last: EventId, send: EventCallback) -> None:
        self._last, self._send = last, send
        self.after = last.cursor
        self.is_answered = False

    async def send(self, page: list[Event]) -> None:
        """Send the events of a page that belong to the stream."""
        for event in page:
            stored, self.after = event.value, event.cursor
            # A priming event has no message: it only gave the client an id.
            if stored["stream"] == self._last.sse_stream and stored["message"]:
                message = jsonrpc_message_adapter.validate_python(stored["message"])
                id_ = EventId(self._last.session, event.cursor, self._last.sse_stream)
                await self._send(EventMessage(message, str(id_)))
                answers = isinstance(message, JSONRPCResponse | JSONRPCError)
                self.is_answered = self.is_answered or answers
