"""Who may speak to a server of ours over HTTP: whoever has the token, and no web page.

A page in somebody's browser can reach what listens on loopback. It is told by the
names it uses: a ``Host`` that is not ours (its own name, made to lead here), or an
``Origin`` that is another's.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

import msgspec

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
EVERYWHERE = frozenset({"0.0.0.0", "[::]"})  # noqa: S104 - what such a Host means

# Why a WebSocket is closed: none of ours speaks through one.
UNWANTED = 1008

MISDIRECTED = "421: this server is not {}; use an address it was started for"
FOREIGN = "403: web pages from {} may not use this server"
UNKNOWN = "401: send the token as the header 'Authorization: Bearer TOKEN'"


class Refused(msgspec.Struct, frozen=True):
    """Why a request goes no further."""

    status: int
    text: str


class Guard:
    """Lets requests through to an application, or refuses them before it sees them.

    ``hosts`` are the names it may be called by besides those of loopback; the name of
    all interfaces stands for any address in numbers, which no page can pretend to own.
    """

    def __init__(self, app: App, *, token: str, hosts: Collection[str] = ()) -> None:
        self._app, self._token = app, token.encode()
        names = (_without_port(bracketed(host.lower())) for host in hosts)
        self._hosts = LOOPBACK.union(names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": UNWANTED})
            return
        refused = self._refused(scope) if scope["type"] == "http" else None
        if refused is None:
            await self._app(scope, receive, send)
        else:
            await _answer(send, refused)

    def _refused(self, scope: Scope) -> Refused | None:
        host, origin = _header(scope, b"host"), _header(scope, b"origin")
        if not self._is_ours(host):
            return Refused(421, MISDIRECTED.format(host or "without a Host"))
        if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            return Refused(403, FOREIGN.format(origin))
        if not self._is_known(_header(scope, b"authorization")):
            return Refused(401, UNKNOWN)
        return None

    def _is_ours(self, host: str | None) -> bool:
        # The port says nothing: a tunnel may lead from another one to ours.
        name = _without_port(host or "").lower()
        is_any = bool(self._hosts & EVERYWHERE) and _address(name) is not None
        return is_any or name in self._hosts

    def _is_known(self, authorization: str | None) -> bool:
        kind, _, token = (authorization or "").partition(" ")
        given = token.strip().encode("latin-1")
        return kind.lower() == "bearer" and hmac.compare_digest(given, self._token)


def bracketed(host: str) -> str:
    """A name or address as it stands in a URL."""
    address = _address(host)
    is_bare = isinstance(address, IPv6Address) and not host.startswith("[")
    return f"[{host}]" if is_bare else host


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine reach what listens there."""
    address = _address(host)
    return host.lower() == "localhost" if address is None else address.is_loopback


def _address(host: str) -> IPv4Address | IPv6Address | None:
    """The address that a host is, ``None`` if it is a name."""
    try:
        return ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return None


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    is_port = colon and port.isascii() and port.isdigit() and not name.endswith(":")
    return name if is_port else host


def _header(scope: Scope, name: bytes) -> str | None:
    """The value of a header; two of them are none that anything is compared to."""
    found = [value for key, value in scope["headers"] if key.lower() == name]
    return b", ".join(found).decode("latin-1") if found else None


async def _answer(send: Send, refused: Refused) -> None:
    body = refused.text.encode("utf-8", "replace")
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
    ]
    if refused.status == 401:  # noqa: PLR2004 - it stands beside its text
        headers.append((b"www-authenticate", b"Bearer"))
    await send(
        {"type": "http.response.start", "status": refused.status, "headers": headers}
    )
    await send({"type": "http.response.body", "body": body})
