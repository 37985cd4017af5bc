"""Serving one client over standard input and output."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterable
from typing import Self

import anyio
from mcp.server.stdio import stdio_server

from holdfast._api.store import AsyncStore
from holdfast.mcp._server import make_server
from holdfast.mcp._shutdown import stopping

STDIN = 0
CHUNK = 1 << 16


async def serve_stdio(
    store: AsyncStore,
    *,
    read_only: bool = False,
    tools: Iterable[str] | None = None,
) -> int | None:
    """Serve a store until the input ends; gives the signal that ended it, if one did.

    Nothing but the protocol goes to the output: what else is printed meanwhile, by
    whomever, goes to standard error. The store stays open.
    """
    server = make_server(store, read_only=read_only, tools=tools)
    options = server.create_initialization_options()
    with Inlet() as inlet, stopping(inlet.end) as signals:
        try:
            async with stdio_server(stdin=inlet.lines) as (incoming, outgoing):
                try:
                    await server.run(incoming, outgoing, options)
                finally:
                    inlet.end()  # whoever still waits for a line must not do so
        except* BrokenPipeError:
            pass  # a client that is gone no longer listens: an end like any other
    return signals[0] if signals else None


class Inlet:
    """Standard input that can be ended from here.

    Reading it blocks a thread for as long as the client says nothing. That thread must
    be one that nobody waits for, and what it reads is passed on.
    """

    def __init__(self) -> None:
        self._passing, receiving = socket.socketpair()
        text = receiving.makefile("r", encoding="utf-8", errors="replace", newline="\n")
        self._receiving, self._text = receiving, text
        self.lines = anyio.wrap_file(text)

    def __enter__(self) -> Self:
        thread = threading.Thread(
            target=self._pass_on, name="holdfast-stdin", daemon=True
        )
        thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self._text.close()
        self._receiving.close()

    def end(self) -> None:
        """Let the server see the end of its input."""
        with contextlib.suppress(OSError):
            self._passing.shutdown(socket.SHUT_WR)

    def _pass_on(self) -> None:
        # Not through sys.stdin, which could not be closed at exit while it is read.
        with contextlib.suppress(OSError):
            while read := os.read(STDIN, CHUNK):
                self._passing.sendall(read)
        self.end()
