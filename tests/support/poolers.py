"""Poolers that give every transaction whatever connection is free.

PgBouncer in transaction mode where it is installed, and one of our own that does the
same to its clients, so that this is tried everywhere.
"""

from __future__ import annotations

import contextlib
import queue
import secrets
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
from pathlib import Path

from support import outages, servers

PGBOUNCER = shutil.which("pgbouncer") or shutil.which("/usr/sbin/pgbouncer")
ENCRYPTIONS, CANCEL = (80877103, 80877104), 80877102
PROTOCOL = 3 << 16


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack(">i", len(body) + 4) + body


class Link:
    """A connection, from which whole messages are read."""

    def __init__(self, end: socket.socket) -> None:
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.end = end
        self._file = end.makefile("rb")

    def _exactly(self, size: int) -> bytes:
        found = self._file.read(size)
        if len(found) < size:
            raise ConnectionError
        return found

    def first(self) -> tuple[int, bytes]:
        """The message with which a client begins: its code, and the rest."""
        size, code = struct.unpack(">ii", self._exactly(8))
        return code, self._exactly(size - 8)

    def message(self) -> tuple[bytes, bytes]:
        kind = self._exactly(1)
        [size] = struct.unpack(">i", self._exactly(4))
        return kind, self._exactly(size - 4)

    def close(self) -> None:
        # The file keeps the connection open as well.
        self._file.close()
        self.end.close()


class Pooler:
    """Lends each transaction of a client the connection that was not used longest."""

    def __init__(self, port: int, connections: int) -> None:
        self._server = ("127.0.0.1", port)
        self._free: queue.Queue[Link] = queue.Queue()
        self._lent: dict[bytes, bytes] = {}
        self._keys: dict[Link, bytes] = {}
        for _ in range(connections):
            self._free.put(self._connected())
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listening.close()
        for link in self._keys:
            link.close()

    def _connected(self) -> Link:
        link = Link(socket.create_connection(self._server))
        names = b"user\0holdfast\0database\0postgres\0\0"
        link.end.sendall(struct.pack(">ii", len(names) + 8, PROTOCOL) + names)
        greeting = b""
        while True:
            kind, body = link.message()
            if kind == b"S":
                greeting += _message(kind, body)
            if kind == b"K":
                self._keys[link] = body
            if kind == b"Z":
                self._greeting = greeting
                return link

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client = Link(self._listening.accept()[0])
                threading.Thread(
                    target=self._serve, args=(client,), daemon=True
                ).start()

    def _serve(self, client: Link) -> None:
        with contextlib.closing(client), contextlib.suppress(OSError):
            code, rest = client.first()
            while code in ENCRYPTIONS:
                client.end.sendall(b"N")
                code, rest = client.first()
            if code == CANCEL:
                self._cancel(rest)
                return
            key = secrets.token_bytes(8)
            welcome = _message(b"R", bytes(4)) + self._greeting
            ready = _message(b"K", key) + _message(b"Z", b"I")
            client.end.sendall(welcome + ready)
            while self._transaction(client, key):
                pass

    def _cancel(self, key: bytes) -> None:
        with contextlib.suppress(KeyError):
            real = self._lent[key]
            with socket.create_connection(self._server) as end:
                end.sendall(struct.pack(">ii", len(real) + 8, CANCEL) + real)
                end.recv(1)

    def _transaction(self, client: Link, key: bytes) -> bool:
        """Pass on one transaction; whether the client may have another."""
        kind, body = client.message()
        if kind == b"X":
            return False
        link = self._free.get()
        self._lent[key] = self._keys[link]
        try:
            status = self._exchange(client, link, kind, body)
            while status != b"I":
                status = self._exchange(client, link, *client.message())
        except OSError:
            link.close()
            del self._keys[link]
            link = self._connected()
            return False
        finally:
            del self._lent[key]
            self._free.put(link)
        return True

    def _exchange(self, client: Link, link: Link, kind: bytes, body: bytes) -> bytes:
        """Pass on a request and its answer; the state of the transaction after it."""
        while True:
            link.end.sendall(_message(kind, body))
            if kind in {b"S", b"Q"}:
                break
            kind, body = client.message()
        while True:
            kind, body = link.message()
            client.end.sendall(_message(kind, body))
            if kind == b"Z":
                return body


@contextlib.contextmanager
def ours(port):
    """The port of a pooler before that of a server."""
    with contextlib.closing(Pooler(port, connections=2)) as pooler:
        yield pooler.port


@contextlib.contextmanager
def pgbouncer(port):
    """As `ours`, by PgBouncer."""
    pooled, folder = servers.free_port(), Path(tempfile.mkdtemp())
    config = folder / "pgbouncer.ini"
    config.write_text(
        f"""
        [databases]
        * = host=127.0.0.1 port={port} user=holdfast
        [pgbouncer]
        listen_addr = 127.0.0.1
        listen_port = {pooled}
        auth_type = any
        pool_mode = transaction
        default_pool_size = 2
        max_client_conn = 100
        unix_socket_dir =
        """.replace("        ", "")
    )
    for path in (folder, config):
        path.chmod(0o755)
    process = subprocess.Popen(
        [PGBOUNCER, "-q", str(config)],
        user=servers.unprivileged(),
        cwd="/",
        stderr=subprocess.DEVNULL,
    )
    try:
        outages.wait_until(lambda: _answers(pooled))
        yield pooled
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder)


def _answers(port):
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


POOLERS = {"ours": ours} | ({"pgbouncer": pgbouncer} if PGBOUNCER else {})
