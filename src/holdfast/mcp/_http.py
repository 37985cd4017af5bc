"""Serving any number of clients over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import msgspec
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast._api.store import AsyncStore
from holdfast._http import RequestCheck, bound, bracketed, serve
from holdfast.adapters.mcp_events import HoldfastEventStore
from holdfast.errors import Unstorable
from holdfast.mcp._server import make_server

PATH = "/mcp"
# The beginning of the names of the streams that hold the events of sessions.
EVENTS = "holdfast-mcp"
# A request may save a whole agent.
LARGEST_BODY = 64 << 20
NOT_RESUMABLE = (
    "405: this server keeps no sessions that a client could resume; ask again without"
    " Last-Event-ID, or start it with --resumable"
)


class Listening(msgspec.Struct, frozen=True, kw_only=True):
    """The address and the token of a server, and its host names besides loopback.

    With ``port`` 0 the system chooses a free one.
    """

    token: str
    host: str = "127.0.0.1"
    port: int = 0
    hosts: Collection[str] = ()


def http_app(
    store: AsyncStore,
    *,
    token: str,
    hosts: Collection[str] = (),
    read_only: bool = False,
    tools: Iterable[str] | None = None,
    resumable: bool = False,
) -> ASGIApp:
    """An ASGI application that serves a store at ``/mcp`` to clients with the token.

    It must be run with its lifespan. ``hosts`` are the names that clients may use for
    it besides ``localhost``. It keeps no state of clients: after a restart they can go
    on as before. With ``resumable`` it keeps sessions instead, whose events are in the
    store: a client that loses its connection resumes and misses nothing.
    """
    if resumable and read_only:
        text = "stores events, and nothing may be stored; leave one of both out"
        raise Unstorable("resumable", text)
    server = make_server(store, read_only=read_only, tools=tools)
    events = HoldfastEventStore(store, name=EVENTS) if resumable else None
    app: ASGIApp = server.streamable_http_app(
        streamable_http_path=PATH,
        stateless_http=not resumable,
        event_store=events,
        max_request_body_size=LARGEST_BODY,
        # `RequestCheck` does this, for every path.
        transport_security=TransportSecuritySettings(
            enable_dns_rebinding_protection=False
        ),
    )
    app = _without_resuming(app) if events is None else events.sessions(app)
    return RequestCheck(app, token=token, hosts=hosts)


def _without_resuming(app: ASGIApp) -> ASGIApp:
    """Refuse clients that want to resume a connection; the SDK would not answer."""
    refusal = PlainTextResponse(NOT_RESUMABLE, 405, {"allow": "POST"})

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        names = {name.lower() for name, _ in scope.get("headers", ())}
        resumes = scope.get("method") == "GET" and b"last-event-id" in names
        await (refusal if resumes else app)(scope, receive, send)

    return answer


async def serve_http(
    store: AsyncStore,
    listening: Listening,
    *,
    read_only: bool = False,
    tools: Iterable[str] | None = None,
    resumable: bool = False,
    ready: Callable[[str], None] | None = None,
) -> int | None:
    """Serve a store until a signal comes; gives the signal, if one came.

    ``ready`` is called with the URL. The store stays open.
    """
    hosts = {listening.host, *listening.hosts}
    app = http_app(
        store,
        token=listening.token,
        hosts=hosts,
        read_only=read_only,
        tools=tools,
        resumable=resumable,
    )
    with bound(listening.host, listening.port) as listener:
        port = listener.getsockname()[1]
        url = f"http://{bracketed(listening.host)}:{port}{PATH}"
        return await serve(app, listener, lambda: ready(url) if ready else None)
