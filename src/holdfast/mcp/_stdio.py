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
from holdfast._http import stopping
from holdfast.mcp._server import make_server

STDIN = 0
CHUNK = 1 << 16


async def serve_stdio(
    store: AsyncStore, *, read_only: bool = False, tools: Iterable[str] | None = None
) -> int | None:
    """Serve a store until the input ends; gives the signal that ended it, if one did.

    Only the protocol goes to standard output: what other code prints meanwhile goes to
    standard error. The store stays open.
    """
    server = make_server(store, read_only=read_only, tools=tools)
    options = server.create_initialization_options()
    with StdinRelay() as stdin, stopping(stdin.end) as signals:
        try:
            async with stdio_server(stdin=stdin.lines) as (incoming, outgoing):
                try:
                    await server.run(incoming, outgoing, options)
                finally:
                    stdin.end()  # ends a read that still waits for a line
        except* BrokenPipeError:
            pass  # the client is gone, which is a normal end
    return signals[0] if signals else None


class StdinRelay:
    """Standard input that this process can end.

    A read of standard input blocks its thread until the client sends something. So a
    daemon thread, which the exit does not wait for, reads it and passes it on.
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
        # Not through sys.stdin: Python could not close it at exit during a read.
        with contextlib.suppress(OSError):
            while read := os.read(STDIN, CHUNK):
                self._passing.sendall(read)
        self.end()
