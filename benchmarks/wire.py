"""A wire to a server on this machine that is as slow as one to another machine."""

from __future__ import annotations

import contextlib
import socket
import threading
import time


class Wire:
    """Passes on all bytes, half of the time of a round trip after they came."""

    def __init__(self, port: int, trip: float) -> None:
        self._server = ("127.0.0.1", port)
        self._one_way = trip / 2
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Take no more connections; those that are there end with their programs."""
        self._listening.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                ends = [
                    self._listening.accept()[0],
                    socket.create_connection(self._server),
                ]
                for end in ends:
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for way in (ends, ends[::-1]):
                    threading.Thread(
                        target=self._pass_on, args=way, daemon=True
                    ).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with source, contextlib.suppress(OSError):
            while chunk := source.recv(1 << 16):
                time.sleep(self._one_way)
                target.sendall(chunk)
            target.shutdown(socket.SHUT_WR)
