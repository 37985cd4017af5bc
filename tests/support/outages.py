"""Servers that break, and writers who go on and remember what was acknowledged."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections import Counter

import psycopg
import pytest

from holdfast import HoldfastError
from holdfast.testing.trials.scenario import problems_of
from support import servers

PATIENCE = 120

# How long a store may need to go on once its server is back.
SOON = 2.0
# For a machine that is busy with other tests.
SLACK = 2.0
OURS = "from pg_stat_activity where application_name = 'holdfast'"


def wait_until(condition, told=lambda: None):
    """Wait for something that is going to be true; ``told`` says what went wrong."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, told()
        time.sleep(0.005)


class Load:
    """Threads that append without end, each to a thread of its own.

    An append that fails is repeated with the id that makes its repetition harmless.
    """

    def __init__(self, stores, writers):
        self.acknowledged = Counter()
        self.errors = []
        # How long a writer has waited at most from one acknowledged save to the next.
        self.longest = 0.0
        self._stopping = threading.Event()
        self.names = [f"own {n}" for n in range(writers)]
        self._threads = [
            threading.Thread(target=self._write, args=(stores[n % len(stores)], name))
            for n, name in enumerate(self.names)
        ]

    def _write(self, store, name):
        n, last = 0, time.monotonic()
        while not self._stopping.is_set():
            try:
                store.thread(name).extend({"log": [n]}, id=f"{name}-{n}")
            except HoldfastError as error:
                self.errors.append(error)
                time.sleep(0.01)
                continue
            n += 1
            self.acknowledged[name] = n
            now = time.monotonic()
            self.longest, last = max(self.longest, now - last), now

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def wait_for(self, more):
        """Wait until each writer has made so many more saves."""
        wanted = {name: self.acknowledged[name] + more for name in self.names}
        wait_until(
            lambda: all(self.acknowledged[n] >= wanted[n] for n in self.names),
            lambda: self.errors[-3:],
        )

    def check(self, store):
        """Everything acknowledged is there, once and in order; nothing else is."""
        for name in self.names:
            log = store.thread(name).load()["log"]
            assert log == list(range(len(log)))
            assert len(log) - self.acknowledged[name] in (0, 1)
            steps = [c.step for c in store.thread(name).history(None, order="oldest")]
            assert steps == list(range(1, len(log) + 1))
        assert problems_of(store) == []


@contextlib.contextmanager
def hung(server):
    """All processes of a server are stopped where they are, until this ends."""
    server.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        server.signal(signal.SIGCONT)


# The codes of calls to a server that hangs.
UNANSWERED = {"busy", "no_answer", "connection_lost"}


def outcome(call, store):
    """How a call failed, and after how many seconds."""
    begun = time.monotonic()
    with pytest.raises(HoldfastError) as raised:
        call(store)
    return raised.value.code, time.monotonic() - begun


@contextlib.contextmanager
def without_standby(server):
    """Commits wait for a standby, and there is none until this ends."""
    _configure(server, "alter system set synchronous_standby_names = 'nobody'")
    try:
        wait_until(lambda: _waits_for_standby(server))
        yield
    finally:
        _configure(server, "alter system reset synchronous_standby_names")
        wait_until(lambda: not _waits_for_standby(server))


def _waits_for_standby(server):
    """Whether a commit waits, until it is called off."""
    waiting, ended = "select pid from pg_stat_activity where wait_event = 'SyncRep'", []

    def commit():
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("select pg_logical_emit_message(true, '', '')")
        ended.append(True)

    thread = threading.Thread(target=commit)
    thread.start()
    with psycopg.connect(server.url, autocommit=True) as admin:
        wait_until(lambda: ended or admin.execute(waiting).fetchall())
        found = admin.execute(waiting).fetchall()
        for (pid,) in found:
            admin.execute("select pg_cancel_backend(%s)", (pid,))
    thread.join()
    return bool(found)


def _configure(server, command):
    with psycopg.connect(server.url, autocommit=True) as admin:
        admin.execute(command)
        admin.execute("select pg_reload_conf()")


@contextlib.contextmanager
def pair(binaries):
    """A primary with a standby that has every save before it is acknowledged."""
    with contextlib.ExitStack() as stack:
        primary = stack.enter_context(servers.server(binaries))
        standby = primary.standby()
        stack.callback(standby.remove)
        standby.start()
        _configure(primary, "alter system set synchronous_standby_names = '*'")
        with psycopg.connect(primary.url, autocommit=True) as admin:
            synchronous = "select 1 from pg_stat_replication where sync_state = 'sync'"
            wait_until(lambda: admin.execute(synchronous).fetchall())
        yield primary, standby


def either(primary, standby):
    """An address that leads to whichever of two servers can be written to."""
    hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
    return f"postgresql://holdfast@{hosts}/postgres?target_session_attrs=read-write"
