"""Errors as documents; a browser never gets a stack trace."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import TypeAlias

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from holdfast.errors import HoldfastError
from holdfast.viewer.headers import TooLarge, error, refuse, too_large

Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]

LOG = logging.getLogger("holdfast")


def told(endpoint: Endpoint) -> Endpoint:
    """An endpoint that answers whatever happens.

    Starlette's own handler for all errors would raise them again, for the log.
    """

    async def answered(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Exception as problem:  # noqa: BLE001 - each gets an answer
            return failed(request, problem)

    return answered


def failed(request: Request, problem: Exception) -> Response:
    """The answer to a request that raised."""
    if isinstance(problem, TooLarge):
        return too_large()
    if isinstance(problem, msgspec.ValidationError | msgspec.DecodeError):
        return refuse(400, str(problem))
    if isinstance(problem, HoldfastError):
        message, _, hint = str(problem).partition("; ")
        return error(problem.http_status, problem.code, message, hint)
    LOG.debug("%s failed", request.url.path, exc_info=problem)
    text = f"the viewer failed on this request ({type(problem).__name__})"
    return refuse(500, f"{text}; try again, and report it if it stays")


def unknown(request: Request, problem: Exception) -> Response:
    """The answer where there is no such path or method."""
    status = getattr(problem, "status_code", 404)
    phrase = HTTPStatus(status).phrase.lower()
    return refuse(status, f"{request.method} {request.url.path}: {phrase}")
