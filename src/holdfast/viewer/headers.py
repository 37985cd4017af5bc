"""The headers of every response, and what a request must be besides allowed.

`holdfast._http` looks at Host, Origin and token. Here the browser's own words
about a request count, the type of a body and its size.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast._http import only
from holdfast.views.documents import as_json

API = "/api/"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none';"
    " require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
# Edited states are sent as a whole.
LARGEST_BODY = 16 << 20
LONGEST_LENGTH = 19
_OWN_SITES = frozenset({"same-origin", "none"})
_READING = frozenset({"GET", "HEAD"})
_CODES = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    415: "not_json",
    421: "wrong_host",
    500: "internal",
}


class AllowedRequests:
    """An application that passes on what the viewer's own page would send.

    A link to the page may stand on any site: its answer holds nothing of the store.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = _refusal(scope) if scope["type"] == "http" else None
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        await self._app(scope, _limited(receive), send)


class WithHeaders:
    """An application whose every response has the headers, refusals included."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def complete(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        await self._app(scope, receive, complete)


class JSON(Response):
    """A document."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return as_json(content)


class TooLarge(Exception):
    """The body of a request is larger than is read."""


def refuse(
    status: int, text: str, headers: Mapping[str, str] | None = None
) -> Response:
    """A refusal as a document; ``text`` may begin with its status."""
    message, _, hint = text.removeprefix(f"{status}: ").partition("; ")
    return error(status, _CODES.get(status, "error"), message, hint, headers)


def error(
    status: int,
    code: str,
    message: str,
    hint: str = "",
    headers: Mapping[str, str] | None = None,
) -> Response:
    """An error as a document."""
    document: dict[str, Any] = {"code": code, "message": message, "hint": hint}
    return JSON({"error": document}, status, dict(headers or {}))


def _refusal(scope: Scope) -> Response | None:
    headers = Headers(scope=scope)
    site = only(headers, "sec-fetch-site")
    if site is not None and site not in _OWN_SITES and not _is_visit(scope, headers):
        return refuse(403, "other web sites may not use this server")
    if scope["method"] in _READING:
        return None
    kind = (only(headers, "content-type") or "").partition(";")[0].strip().lower()
    if kind != "application/json":
        return refuse(415, "a change is sent as JSON; set Content-Type")
    length = only(headers, "content-length") or "0"
    is_number = length.isascii() and length.isdigit()
    if not is_number or len(length) > LONGEST_LENGTH or int(length) > LARGEST_BODY:
        return too_large()
    return None


def _is_visit(scope: Scope, headers: Headers) -> bool:
    """True if a browser opens the page itself in a tab."""
    is_page = scope["method"] == "GET" and scope["path"] == "/"
    mode, target = only(headers, "sec-fetch-mode"), only(headers, "sec-fetch-dest")
    return is_page and mode == "navigate" and target == "document"


def _limited(receive: Receive) -> Receive:
    """The body, as far as it is allowed: its announced length may be wrong."""
    left = LARGEST_BODY

    async def limited() -> Message:
        nonlocal left
        message = await receive()
        left -= len(message.get("body", b""))
        if left < 0:
            raise TooLarge
        return message

    return limited


def too_large() -> Response:
    """The refusal of a large body."""
    return refuse(413, f"a body has at most {LARGEST_BODY} bytes; send less")
