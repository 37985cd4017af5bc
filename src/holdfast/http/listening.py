"""Listening on an address, and a server of uvicorn that leaves signals alone."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from collections.abc import Callable, Generator

import uvicorn
from starlette.types import ASGIApp

from holdfast.errors import HoldfastError
from holdfast.http.check import bracketed
from holdfast.http.shutdown import stopping

# Seconds that requests in progress get when the server has to stop.
GRACE = 2
LOG = logging.getLogger("uvicorn.error")


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
