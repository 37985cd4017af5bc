"""Serving any number of clients over HTTP."""

from __future__ import annotations

import contextlib
import logging
import socket
from collections.abc import Callable, Collection, Generator, Iterable

import msgspec
import uvicorn
from mcp.server.transport_security import TransportSecuritySettings

from holdfast._api.store import AsyncStore
from holdfast.errors import HoldfastError, Unstorable
from holdfast.mcp._auth import App, Guard, bracketed
from holdfast.mcp._server import make_server
from holdfast.mcp._shutdown import stopping

PATH = "/mcp"
LEAST_TOKEN = 16
# Seconds for requests that are under way when the server is told to stop.
GRACE = 2
# Whole agents are saved in one request.
LARGEST_BODY = 64 << 20
LOG = logging.getLogger("uvicorn.error")


class Listening(msgspec.Struct, frozen=True, kw_only=True):
    """Where a server listens, who may call it, and by which names besides loopback.

    With ``port`` 0 the system chooses one.
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
) -> App:
    """An ASGI application that serves a store at ``/mcp`` to whoever has the token.

    It must be run with its lifespan. ``hosts`` are the names it may be called by
    besides ``localhost``. No client is remembered: a server that is started again goes
    on with those of the one before.
    """
    if len(token) < LEAST_TOKEN or not (token.isascii() and token.isprintable()):
        text = f"must be {LEAST_TOKEN} or more printable characters of ASCII"
        raise Unstorable("token", text)
    server = make_server(store, read_only=read_only, tools=tools)
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        stateless_http=True,
        max_request_body_size=LARGEST_BODY,
        # The guard in front of it does this, for every path.
        transport_security=TransportSecuritySettings(
            enable_dns_rebinding_protection=False
        ),
    )
    return Guard(app, token=token, hosts=hosts)


async def serve_http(
    store: AsyncStore,
    listening: Listening,
    *,
    read_only: bool = False,
    tools: Iterable[str] | None = None,
    ready: Callable[[str], None] | None = None,
) -> int | None:
    """Serve a store until a signal comes, and give which; ``ready`` is told the URL.

    The store stays open.
    """
    hosts = {listening.host, *listening.hosts}
    app = http_app(
        store, token=listening.token, hosts=hosts, read_only=read_only, tools=tools
    )
    server = Unsignalled(
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
        bound(listening.host, listening.port) as place,
        stopping(server.end) as signals,
    ):
        if ready is not None:
            port = place.getsockname()[1]
            ready(f"http://{bracketed(listening.host)}:{port}{PATH}")
        await server.serve(sockets=[place])
    return signals[0] if signals else None


class Unsignalled(uvicorn.Server):
    """A server that leaves signals to us: it would die of them with the store open."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    def end(self) -> None:
        """Stop when what is under way is done, or has had its time."""
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # What is cut off now would be told at length, as if it were a mistake.
        level = LOG.level
        LOG.setLevel(logging.CRITICAL)
        try:
            await super().shutdown(sockets)
        finally:
            LOG.setLevel(level)


@contextlib.contextmanager
def bound(host: str, port: int) -> Generator[socket.socket]:
    """A socket that listens already: nobody who is told of it comes too soon."""
    try:
        place = _listening(host, port)
    except (OSError, OverflowError) as error:
        text = f"cannot listen on {bracketed(host)}:{port}: {error}; choose another"
        raise HoldfastError(text, code="cannot_listen") from error
    with place:
        yield place


def _listening(host: str, port: int) -> socket.socket:
    [(family, kind, protocol, _, address), *_] = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
    )
    # The protocol must be said: without it asyncio leaves Nagle's delay switched on.
    place = socket.socket(family, kind, protocol)
    try:
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        place.bind(address)
        place.listen()
    except OSError:
        place.close()
        raise
    return place
