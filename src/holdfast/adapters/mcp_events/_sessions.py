"""The session of a request, so that a client gets only the events of its own session.

The SDK gives one event store to all sessions, and names the SSE streams of each by the
numbers of its requests: every session has a stream "1". The session itself is known
only from the headers of requests and responses.
"""

from __future__ import annotations

from contextvars import ContextVar
from uuid import uuid4
from weakref import WeakValueDictionary

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADER = "mcp-session-id"
# The first status of a response that refuses.
REFUSED = 400


class Session:
    """A session as the store knows it, and how many events this process stored."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.stored = 0
        self.is_over = False


# The tasks of a session are started by its first request and inherit its value.
current: ContextVar[Session | None] = ContextVar("holdfast_session", default=None)


class SessionScope:
    """An ASGI application that keeps the sessions of another one apart.

    A session's name here is not its secret id, because the name is visible in event ids
    and in the store.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        # Kept as long as the tasks of the session, which the SDK keeps in this process.
        self._sessions: WeakValueDictionary[str, Session] = WeakValueDictionary()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get(HEADER)
        session = self._sessions.get(given or "") or Session(uuid4().hex)

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                answered = Headers(raw=message["headers"]).get(HEADER)
                if given is None and answered is not None:
                    self._sessions[answered] = session
                elif scope["method"] == "DELETE" and message["status"] < REFUSED:
                    session.is_over = True
            await send(message)

        token = current.set(session)
        try:
            await self._app(scope, receive, watched)
        finally:
            current.reset(token)
