"""What goes wrong, as a document; a browser never gets a stack trace."""

from __future__ import annotations

import logging
from http import HTTPStatus

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from holdfast.errors import (
    Busy,
    Conflict,
    Corrupt,
    HoldfastError,
    NotFound,
    Unstorable,
    Unsupported,
)
from holdfast.viewer.headers import TooLarge, error, refuse, too_large

LOG = logging.getLogger("holdfast")

# The first class that fits decides.
_STATUS: tuple[tuple[type[HoldfastError], int], ...] = (
    (NotFound, 404),
    (Conflict, 409),
    (Busy, 423),
    (Unstorable, 400),
    (Unsupported, 403),
    (Corrupt, 500),
)


def failed(request: Request, problem: Exception) -> Response:
    """The answer to a request that raised."""
    if isinstance(problem, TooLarge):
        return too_large()
    if isinstance(problem, msgspec.ValidationError | msgspec.DecodeError):
        return refuse(400, str(problem))
    if isinstance(problem, HoldfastError):
        return _told(problem)
    LOG.debug("%s failed", request.url.path, exc_info=problem)
    text = f"the viewer failed on this request ({type(problem).__name__})"
    return refuse(500, f"{text}; try again, and report it if it stays")


def unknown(request: Request, problem: Exception) -> Response:
    """The answer where there is no such path or method."""
    status = getattr(problem, "status_code", 404)
    phrase = HTTPStatus(status).phrase.lower()
    return refuse(status, f"{request.method} {request.url.path}: {phrase}")


def _told(problem: HoldfastError) -> Response:
    found = (status for kind, status in _STATUS if isinstance(problem, kind))
    message, _, hint = str(problem).partition("; ")
    return error(next(found, 500), problem.code, message, hint)
