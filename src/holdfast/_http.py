"""HTTP for our servers: the check of requests, listening and stopping.

It is a part of neither the viewer nor the MCP server, because each of them needs an
extra that the other does not: Jinja, and the SDK of the protocol.

Every request is checked: its Host, its Origin and its token. A web page in a browser on
this machine can reach a server on loopback. Such a request has a ``Host`` that is the
page's own name (DNS rebinding), or an ``Origin`` that is not this server.

The MCP SDK's `TransportSecuritySettings` would check less: only the path of the
protocol, host names in one case, and origins from a fixed list, so that a page on any
port of localhost would pass. It cannot express "any IP address", which
``--host 0.0.0.0`` needs. So the check is made here, for every path.
"""

from __future__ import annotations

import contextlib
import hmac
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Collection, Generator, Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address
from types import FrameType
from typing import TypeAlias

import uvicorn
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.errors import HoldfastError, Unstorable

LEAST_TOKEN = 16
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
ALL_INTERFACES = frozenset({"0.0.0.0", "[::]"})  # noqa: S104 - only compared

DEFAULT_PORTS = frozenset({"80", "443"})

# The status that closes a WebSocket: policy violation. This server has none.
NO_WEBSOCKETS = 1008

WRONG_HOST = (
    "421: this server is not {}; use an address it was started for, or start it with"
    " --allow-host and this one"
)
WRONG_ORIGIN = "403: web pages from {} may not use this server"
UNAUTHORIZED = "401: send the token as the header 'Authorization: Bearer TOKEN'"
NO_STORE = {"cache-control": "no-store", "x-content-type-options": "nosniff"}

# Makes the answer to a refused request, of its status, a text and headers.
Refuse: TypeAlias = Callable[[int, str, Mapping[str, str]], Response]

# Seconds that requests in progress get when the server has to stop.
GRACE = 2
LOG = logging.getLogger("uvicorn.error")
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class RequestCheck:
    """An application that passes only allowed requests on to another one.

    ``hosts`` are the names of the server besides those of loopback. The address of all
    interfaces allows any IP address as ``Host``: no web page can own one as its name. A
    port in ``Host`` must be the one this server listens on. The other end of a tunnel
    or proxy is named with its port: ``localhost:9000``. ``origins`` are those of web
    pages that may use the server besides its own. Paths that are ``public`` need no
    token. ``refuse`` makes the answers to other requests.

    Raises `Unstorable` if the token is short, or cannot stand in a header.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        token: str,
        hosts: Collection[str] = (),
        origins: Collection[str] = (),
        public: Callable[[str], bool] = lambda _path: False,
        refuse: Refuse | None = None,
    ) -> None:
        if len(token) < LEAST_TOKEN or not (token.isascii() and token.isprintable()):
            text = f"must be {LEAST_TOKEN} or more printable characters of ASCII"
            raise Unstorable("token", text)
        self._app, self._token = app, token.encode()
        self._hosts = LOOPBACK.union(*map(_as_clients_write, hosts))
        self._origins = frozenset(origin.lower() for origin in origins)
        self._public = public
        self._refuse = refuse or plain_refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": NO_WEBSOCKETS})
            return
        refusal = self._refusal(scope) if scope["type"] == "http" else None
        await (refusal or self._app)(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host, origin = only(headers, "host"), only(headers, "origin")
        if not self._is_ours(host, _own_port(scope)):
            return self._refuse(421, WRONG_HOST.format(host or "without a Host"), {})
        if origin is not None and not self._may_use(origin, host):
            return self._refuse(403, WRONG_ORIGIN.format(origin), {})
        if self._public(scope["path"]):
            return None
        if not self._has_token(only(headers, "authorization")):
            return self._refuse(401, UNAUTHORIZED, {"www-authenticate": "Bearer"})
        return None

    def _may_use(self, origin: str, host: str | None) -> bool:
        own = (f"http://{host}", f"https://{host}")
        return origin in own or origin.lower() in self._origins

    def _is_ours(self, host: str | None, own: int | None) -> bool:
        whole = (host or "").lower()
        if whole in self._hosts:
            return True
        name, port = _split(whole)
        # A proxy may leave the port out; a server on a Unix socket has none.
        if port and own is not None and port != str(own):
            return False
        is_any = bool(self._hosts & ALL_INTERFACES) and _address(name) is not None
        return is_any or name in self._hosts

    def _has_token(self, authorization: str | None) -> bool:
        kind, _, token = (authorization or "").partition(" ")
        given = token.strip().encode("latin-1")
        return kind.lower() == "bearer" and hmac.compare_digest(given, self._token)


def bracketed(host: str) -> str:
    """A name or address as it is written in a URL."""
    address = _address(host)
    is_bare = isinstance(address, IPv6Address) and not host.startswith("[")
    return f"[{host}]" if is_bare else host


def _address(host: str) -> IPv4Address | IPv6Address | None:
    """The address that a host is, ``None`` if it is a name."""
    try:
        return ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return None


def _as_clients_write(host: str) -> set[str]:
    """A host as it may stand in a request: clients leave out a default port."""
    whole = bracketed(host.lower())
    name, port = _split(whole)
    return {whole, name} if port in DEFAULT_PORTS else {whole}


def _own_port(scope: Scope) -> int | None:
    """The port on which a request came in, if that is known."""
    server: tuple[str, int | None] | None = scope.get("server")
    return server[1] if server else None


def _split(host: str) -> tuple[str, str]:
    """The name and the port of a host; the port is empty if there is none."""
    name, colon, port = host.rpartition(":")
    is_port = colon and port.isascii() and port.isdigit() and not name.endswith(":")
    return (name, port) if is_port else (host, "")


def only(headers: Headers, name: str) -> str | None:
    """The value of a header; of a repeated one, a text that equals nothing allowed."""
    found = headers.getlist(name)
    return ", ".join(found) if found else None


def plain_refusal(status: int, text: str, headers: Mapping[str, str]) -> Response:
    """A refusal for a program."""
    return PlainTextResponse(text, status, {**NO_STORE, **headers})


# --- listening and stopping -----------------------------------------------------------


async def serve(
    app: ASGIApp, listener: socket.socket, ready: Callable[[], None] | None = None
) -> int | None:
    """Serve an application until a signal comes; gives the signal, if one came."""
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
    with stopping(server.end) as signals:
        if ready is not None:
            ready()
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


@contextlib.contextmanager
def bound_to_file(path: str) -> Generator[socket.socket]:
    """A Unix socket that only this user can reach; its file is removed at the end."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(path)
        listener.listen()
    except OSError as error:
        listener.close()
        text = f"cannot listen on {path}: {error}; choose another"
        raise HoldfastError(text, code="cannot_listen") from error
    finally:
        os.umask(before)
    try:
        with listener:
            yield listener
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)


@contextlib.contextmanager
def stopping(stop: Callable[[], None]) -> Generator[list[int]]:
    """Call ``stop`` at the first signal; gives the list of signals that came.

    A second signal has its usual effect, so that the user can end a slow stop.
    """
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        del frame
        came.append(number)
        for known, usual in before.items():
            signal.signal(known, usual)
        stop()

    if threading.current_thread() is not threading.main_thread():
        yield came  # only the main thread can receive signals
        return
    before = {number: signal.signal(number, note) for number in SIGNALS}
    try:
        yield came
    finally:
        for known, usual in before.items():
            signal.signal(known, usual)
