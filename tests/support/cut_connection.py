"""A cable to PostgreSQL that can be cut: before a request, or its answer, arrives."""

from __future__ import annotations

import contextlib
import socket
import threading

# What ends a request of a client, and an answer of the server.
REQUEST_ENDS = (b"S", b"Q")
ANSWER_ENDS = (b"Z",)
HEADER = 5


class Cable:
    """Passes everything on, until it is told to cut at the n-th request or answer."""

    def __init__(self, port: int) -> None:
        self._server = ("127.0.0.1", port)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._lock = threading.Lock()
        self._cut_at: int | None = None
        self._side = ""
        self.count = 0
        # Whether every new connection is refused.
        self.is_dead = False
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listening.close()

    def arm(self, side: str, at: int | None = None) -> None:
        """Count the requests or the answers from now on, and cut at one of them."""
        with self._lock:
            self._side, self._cut_at, self.count = side, at, 0

    def disarm(self) -> int:
        """Cut nothing any more; how many were counted."""
        with self._lock:
            self._side, self._cut_at = "", None
            return self.count

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                if self.is_dead:
                    client.close()
                else:
                    self._connect(client)

    def _connect(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(self._server)
        except OSError:
            client.close()
            return
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        ways = (
            (client, server, "request", REQUEST_ENDS),
            (server, client, "answer", ANSWER_ENDS),
        )
        for way in ways:
            threading.Thread(target=self._pass_on, args=way, daemon=True).start()

    def _pass_on(self, source, target, side, ends) -> None:
        # A connection begins with a message that has no type.
        has_begun = side == "answer"
        waiting = b""
        with contextlib.suppress(OSError):
            while chunk := source.recv(1 << 16):
                waiting += chunk
                if not has_begun:
                    target.sendall(waiting)
                    waiting, has_begun = b"", True
                    continue
                while (size := _whole(waiting, ends)) is not None:
                    if self._cuts(side):
                        # The server still does what it was asked; its answer is lost.
                        _hang_up(source, target)
                        return
                    target.sendall(waiting[:size])
                    waiting = waiting[size:]
        _hang_up(source, target)

    def _cuts(self, side: str) -> bool:
        with self._lock:
            if side != self._side:
                return False
            self.count += 1
            return self.count == self._cut_at


def _whole(data: bytes, ends: tuple[bytes, ...]) -> int | None:
    """The size of the first whole request or answer in some bytes."""
    at = 0
    while at + HEADER <= len(data):
        size = 1 + int.from_bytes(data[at + 1 : at + HEADER], "big")
        if at + size > len(data):
            return None
        kind = data[at : at + 1]
        at += size
        if kind in ends:
            return at
    return None


def _hang_up(*sockets: socket.socket) -> None:
    for end in sockets:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()
