"""Serving any number of clients over HTTP."""

from __future__ import annotations

import contextlib
import logging
import socket
from collections.abc import Callable, Collection, Generator, Iterable

import msgspec
import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp

from holdfast._api.store import AsyncStore
from holdfast.errors import HoldfastError, Unstorable
from holdfast.mcp._auth import RequestCheck, bracketed
from holdfast.mcp._server import make_server
from holdfast.mcp._shutdown import stopping

PATH = "/mcp"
LEAST_TOKEN = 16
# Seconds that requests in progress get when the server has to stop.
GRACE = 2
# A request may save a whole agent.
LARGEST_BODY = 64 << 20
LOG = logging.getLogger("uvicorn.error")


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
) -> ASGIApp:
    """An ASGI application that serves a store at ``/mcp`` to clients with the token.

    It must be run with its lifespan. ``hosts`` are the names that clients may use for
    it besides ``localhost``. It keeps no state of clients: after a restart they can go
    on as before.
    """
    if len(token) < LEAST_TOKEN or not (token.isascii() and token.isprintable()):
        text = f"must be {LEAST_TOKEN} or more printable characters of ASCII"
        raise Unstorable("token", text)
    server = make_server(store, read_only=read_only, tools=tools)
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        stateless_http=True,
        max_request_body_size=LARGEST_BODY,
        # `RequestCheck` does this, for every path.
        transport_security=TransportSecuritySettings(
            enable_dns_rebinding_protection=False
        ),
    )
    return RequestCheck(app, token=token, hosts=hosts)


async def serve_http(
    store: AsyncStore,
    listening: Listening,
    *,
    read_only: bool = False,
    tools: Iterable[str] | None = None,
    ready: Callable[[str], None] | None = None,
) -> int | None:
    """Serve a store until a signal comes; gives the signal, if one came.

    ``ready`` is called with the URL. The store stays open.
    """
    hosts = {listening.host, *listening.hosts}
    app = http_app(
        store, token=listening.token, hosts=hosts, read_only=read_only, tools=tools
    )
    server = SignalFreeServer(
        uvicorn.Config(
            app,
            lifespan="on",
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=GRACE,
        )
    )
    with (
        bound(listening.host, listening.port) as listener,
        stopping(server.end) as signals,
    ):
        if ready is not None:
            port = listener.getsockname()[1]
            ready(f"http://{bracketed(listening.host)}:{port}{PATH}")
        await server.serve(sockets=[listener])
    return signals[0] if signals else None


class SignalFreeServer(uvicorn.Server):
    """A server without signal handlers: uvicorn's would exit with the store open."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    def end(self) -> None:
        """Stop when the requests in progress are done, or after `GRACE`."""
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # uvicorn would log every connection that it closes here as an error.
        level = LOG.level
        LOG.setLevel(logging.CRITICAL)
        try:
            await super().shutdown(sockets)
        finally:
            LOG.setLevel(level)


@contextlib.contextmanager
def bound(host: str, port: int) -> Generator[socket.socket]:
    """A socket that listens before its address is announced to clients."""
    try:
        listener = _listener(host, port)
    except (OSError, OverflowError) as error:
        text = f"cannot listen on {bracketed(host)}:{port}: {error}; choose another"
        raise HoldfastError(text, code="cannot_listen") from error
    with listener:
        yield listener


def _listener(host: str, port: int) -> socket.socket:
    [(family, kind, protocol, _, address), *_] = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
    )
    # asyncio switches Nagle's delay off only if the protocol is given here.
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen()
    except OSError:
        listener.close()
        raise
    return listener
