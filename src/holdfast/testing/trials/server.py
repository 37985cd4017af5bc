"""A server whose connections are ended, or hang, in the middle of saves."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import time
from functools import partial
from typing import Any
from urllib.parse import quote

from holdfast import HoldfastError, Store, Thread
from holdfast._api.plugins import import_extra
from holdfast.testing.trials.children import Child, Tell
from holdfast.testing.trials.scenario import problems_of
from holdfast.testing.trials.task import NotRun, Target, Task, Trials

APPLICATION = "holdfast selftest"
END = (
    "select count(pg_terminate_backend(pid)) from pg_stat_activity"
    " where application_name = %s and pid <> pg_backend_pid()"
)
ATTEMPTS = 20
# Seconds between two times that connections are ended; a save recovers in less.
PAUSE = 0.3
# The longest time of a save with its recovery, on a busy machine.
RECOVERY = 10.0
PATIENCE = 2.0
# The longest time of a call beyond its timeout, on a busy machine.
GRACE = 5.0
TCP_PORT = 5432


def _addressed(target: Target, **changes: str | int) -> Target:
    """The same target, reached in another way."""
    conninfo = import_extra("psycopg.conninfo", "PostgreSQL", "postgres")
    parts: dict[str, Any] = conninfo.conninfo_to_dict(target.address)
    parts.update(changes)
    query = "&".join(
        f"{name}={quote(str(value), safe='')}" for name, value in parts.items()
    )
    return type(target)(f"postgresql:///?{query}", target.folder, prefix=target.prefix)


# --- connections that are ended -------------------------------------------------------


def _end_connections(address: str, name: str, tell: Tell) -> None:
    """In a child: end the connections of the row, now and then."""
    psycopg = import_extra("psycopg", "PostgreSQL", "postgres")
    with psycopg.connect(address, autocommit=True) as connection:
        while True:
            [(ended,)] = connection.execute(END, (name,)).fetchall()
            tell(ended)
            time.sleep(PAUSE)


def ended_connections(task: Task) -> Trials:
    """Repeat every save by its id until it is acknowledged: each is there once."""
    name = f"{APPLICATION} {task.target.prefix}"[:63]
    target = _addressed(task.target, application_name=name)
    wrong: list[str] = []
    with target.open("store") as store:
        thread = store.thread("chat")
        thread.append(log=["first"])
        killer = Child(partial(_end_connections, task.target.address, name))
        saves, ended = 1, 0
        while ended < task.count:
            began = time.monotonic()
            if not _saved(thread, saves):
                wrong.append(f"save {saves} failed {ATTEMPTS} times")
                break
            if (seconds := time.monotonic() - began) > RECOVERY:
                wrong.append(f"save {saves} took {seconds:.1f} s")
            saves += 1
            ended += _reported(killer)
            task.done(ended)
        killer.kill()
        killer.wait()
    with target.open("store", cache_size=0) as store:
        found = store.thread("chat").load()["log"]
        if found != ["first", *range(1, saves)]:
            wrong.append(f"{saves} saves acknowledged, {len(found)} are there")
        wrong += problems_of(store)
    return Trials(ended, wrong, f"{saves:,} saves")


def _saved(thread: Thread, n: int) -> bool:
    for _ in range(ATTEMPTS):
        with contextlib.suppress(HoldfastError):
            thread.extend({"log": [n]}, id=f"save-{n}")
            return True
    return False


def _reported(child: Child) -> int:
    """The number of connections in the child's next report, 0 if there is none yet."""
    ready, _, _ = select.select([child], [], [], 0)
    return int(child.report() or 0) if ready else 0


# --- a server that hangs --------------------------------------------------------------


def _pass_on(listening: socket.socket, server: tuple[str, int], _: Tell) -> None:
    """In a child: pass everything on between clients and the server."""
    others: dict[socket.socket, socket.socket] = {}
    while True:
        for one in select.select([listening, *others], [], [])[0]:
            if one is listening:
                client = listening.accept()[0]
                link = _connected(server)
                others |= {client: link, link: client}
            elif one in others:
                _forward(one, others)


def _connected(server: tuple[str, int]) -> socket.socket:
    if not server[0].startswith("/"):
        return socket.create_connection(server)
    link = socket.socket(socket.AF_UNIX)
    link.connect(f"{server[0]}/.s.PGSQL.{server[1]}")
    return link


def _forward(one: socket.socket, others: dict[socket.socket, socket.socket]) -> None:
    other = others[one]
    with contextlib.suppress(OSError):
        if piece := one.recv(1 << 16):
            other.sendall(piece)
            return
    for end in (one, other):
        del others[end]
        end.close()


def hung_server(task: Task) -> Trials:
    """Stop a proxy in front of the server: every call ends in time."""
    conninfo = import_extra("psycopg.conninfo", "PostgreSQL", "postgres")
    parts = conninfo.conninfo_to_dict(task.target.address)
    if parts.get("sslmode") in {"verify-full", "verify-ca"}:
        raise NotRun("the server's name is verified, and the trial stands in between")
    host, port = str(parts.get("host", "localhost")), int(parts.get("port", TCP_PORT))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        link = Child(partial(_pass_on, listening, (host, port)))
        near = {"host": "127.0.0.1", "port": listening.getsockname()[1]}
        target = _addressed(task.target, **near)
        try:
            with target.open("store", busy_timeout=PATIENCE) as store:
                wrong = [
                    w for n in range(task.count) for w in _hang(store, link, n, task)
                ]
        finally:
            link.kill()
            link.wait()
    with task.target.open("store", cache_size=0) as store:
        wrong += _unlike(store, task.count)
    return Trials(task.count, wrong)


def _hang(store: Store, link: Child, n: int, task: Task) -> list[str]:
    os.kill(link.pid, signal.SIGSTOP)
    began = time.monotonic()
    is_saved = False
    with contextlib.suppress(HoldfastError):
        store.thread("chat").extend({"log": [n]}, id=f"save-{n}")
        is_saved = True
    seconds = time.monotonic() - began
    os.kill(link.pid, signal.SIGCONT)
    wrong = ["a save was acknowledged by a server that hangs"] if is_saved else []
    if seconds > PATIENCE + GRACE:
        wrong.append(f"a call took {seconds:.1f} s, its timeout is {PATIENCE:.0f} s")
    if not _saved(store.thread("chat"), n):
        wrong.append("no save worked after the server went on")
    task.done(n + 1)
    return wrong


def _unlike(store: Store, count: int) -> list[str]:
    found = store.thread("chat").load()["log"]
    wrong = problems_of(store)
    return wrong if found == list(range(count)) else [*wrong, f"found {found}"]
