"""A server that is killed, restarted, hung or replaced: the same store goes on."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

import databases
import holdfast
import servers
from holdfast import Busy, HoldfastError, Retention
from holdfast.testing import raises
from programs.running import seed_of
from programs.scenario import problems_of

# How long a store may need to go on once its server is back.
SOON = 2.0
# For a machine that is busy with other tests.
SLACK = 2.0


@pytest.fixture(scope="module")
def server():
    """A server of our own: it is going to suffer."""
    with servers.server(servers.NEWEST) as server:
        yield server


@pytest.fixture
def place(server):
    with databases.place(server.url) as place:
        yield place


@pytest.fixture(params=databases.DOORS)
def door(request):
    return request.param


def _seconds(call):
    begun = time.monotonic()
    call()
    return time.monotonic() - begun


class Load:
    """Threads that append without end, and remember what was acknowledged."""

    def __init__(self, store, writers):
        self.store = store
        self.acknowledged = Counter()
        self.errors = []
        self.stopping = threading.Event()
        self.threads = [
            threading.Thread(target=self._write, args=(n,)) for n in range(writers)
        ]

    def _write(self, number):
        # One by one, each with the id that makes its repetition harmless.
        thread = self.store.thread(f"own {number}")
        n = 0
        while not self.stopping.is_set():
            try:
                thread.extend({"log": [n]}, id=f"{number}-{n}")
            except HoldfastError as error:
                self.errors.append(error)
                time.sleep(0.01)
                continue
            n += 1
            self.acknowledged[f"own {number}"] = n

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        for thread in self.threads:
            thread.join()

    def wait_for(self, more):
        """Wait until each writer has made so many more saves."""
        before = Counter(self.acknowledged)
        deadline = time.monotonic() + 60
        while any(self.acknowledged[t] < before[t] + more for t in self._names()):
            assert time.monotonic() < deadline, self.errors[-3:]
            time.sleep(0.005)

    def _names(self):
        return [f"own {n}" for n in range(len(self.threads))]

    def check(self, store):
        """Everything acknowledged is there, once and in order; nothing else is."""
        for name in self._names():
            log = store.thread(name).load()["log"]
            assert log == list(range(len(log)))
            assert len(log) - self.acknowledged[name] in (0, 1)
            steps = [c.step for c in store.thread(name).history(None, order="oldest")]
            assert steps == list(range(1, len(log) + 1))
        assert problems_of(store) == []


# --- connections that die -------------------------------------------------------------


def test_saves_go_on_while_their_sessions_are_killed(place, door):
    seed = seed_of("killed sessions")
    chance = random.Random(seed)
    victims = (
        "select pid from pg_stat_activity"
        " where application_name = 'holdfast' and pid <> pg_backend_pid()"
    )
    with place.open(door, pool=(1, 4), busy_timeout=30) as store:
        with Load(store, 6) as load:
            for _ in range(30):
                found = [pid for (pid,) in place.run(victims)]
                for pid in chance.sample(found, min(2, len(found))):
                    place.run("select pg_terminate_backend(%s)", (pid,))
                time.sleep(chance.uniform(0, 0.01))
            load.wait_for(3)

        assert load.errors == [], f"seed {seed}"
        load.check(store)


def test_a_session_process_that_is_killed_takes_no_save_with_it(place, server, door):
    """The server ends all sessions then, and recovers."""
    with place.open(door, pool=(1, 4), busy_timeout=30) as store:
        with Load(store, 4) as load:
            load.wait_for(3)
            [(pid,), *_] = place.run(
                "select pid from pg_stat_activity where application_name = 'holdfast'"
            )
            os.kill(pid, signal.SIGKILL)
            load.wait_for(3)

        assert load.errors == []
        load.check(store)


def test_connections_that_died_in_the_pool_are_not_noticed_by_callers(place, door):
    with place.open(door, pool=(4, 4)) as store:
        with ThreadPoolExecutor(4) as pool:
            threads = [store.thread(f"t{n}") for n in range(4)]
            list(pool.map(lambda thread: thread.save({"n": 0}), threads))
        for _ in range(2):
            place.run(
                "select pg_terminate_backend(pid, 10000) from pg_stat_activity"
                " where application_name = 'holdfast'"
            )

            assert store.thread("t0").load() == {"n": 0}
            store.thread("t1").append(log=[1])


# --- restarts -------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["immediate", "fast"])
def test_a_store_goes_on_when_its_server_is_back(mode, server, place, door):
    with place.open(door, busy_timeout=1) as store:
        store.thread("a").save({"n": 0})
        server.stop(mode)
        try:
            with raises(HoldfastError, "connection_lost"):
                store.thread("a").save({"n": 1})
            with raises(HoldfastError, "connection_lost"):
                store.thread("a").load()
        finally:
            server.start()

        # The one that could not be made is not, and the next is.
        assert _seconds(lambda: store.thread("a").save({"n": 2})) < SOON
        assert store.thread("a").load() == {"n": 2}
        assert store.thread("a").step == 2


def test_calls_made_while_the_server_restarts_wait_for_it(server, place, door):
    with place.open(door, busy_timeout=30) as store:
        store.thread("a").save({"n": 0})
        server.stop()
        with ThreadPoolExecutor(4) as pool:
            saves = [
                pool.submit(store.thread(f"t{n}").save, {"n": n}) for n in range(4)
            ]
            server.start()
            back = time.monotonic()
            found = [save.result() for save in saves]

        assert time.monotonic() - back < SOON
        assert [saved.step for saved in found] == [1] * 4


def test_no_acknowledged_save_is_lost_by_restarts_under_load(server, place, door):
    with place.open(door, busy_timeout=30) as store:
        with Load(store, 4) as load:
            for _ in range(2):
                load.wait_for(3)
                server.stop()
                server.start()
            load.wait_for(3)

        assert load.errors == []
        load.check(store)


def test_who_waits_for_changes_goes_on_waiting_after_a_restart(server, place, door):
    with place.open(door, busy_timeout=30) as store, place.open() as other:
        other.thread("a").save({"n": 0})
        cursor = store.changes().cursor
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(store.changes, cursor, timeout=60)
            server.stop()
            server.start()
            saved = other.thread("a").save({"n": 1})

            assert [change.subject for change in waiting.result()] == [saved.id]


# --- a server that hangs --------------------------------------------------------------

CALLS = {
    "save": lambda store: store.thread("a").save({"n": 1}),
    "append": lambda store: store.thread("a").append(log=[1]),
    "first save": lambda store: store.thread("new").save({"n": 1}),
    "load": lambda store: store.thread("a").load(),
    "head": lambda store: store.thread("a").head,
    "history": lambda store: store.thread("a").history(),
    "record": lambda store: store.thread("a").record("key", 1),
    "fork": lambda store: store.thread("a").fork("fork"),
    "delete": lambda store: store.delete("a"),
    "prune": lambda store: store.prune(Retention(last=1)),
    "changes": lambda store: store.changes(),
    "threads": lambda store: store.threads(),
    "search": lambda store: store.search("word"),
    "stats": lambda store: store.stats(),
    "verify": lambda store: store.verify(),
    "compact": lambda store: store.compact(),
}


@pytest.fixture
def hung(server):
    """Stops all processes of the server, and lets them go on."""

    class Hung:
        def begin(self):
            server.signal(signal.SIGSTOP)

        def end(self):
            server.signal(signal.SIGCONT)

    hung = Hung()
    yield hung
    hung.end()


def _outcome(call, store):
    """How a call failed, and after how many seconds."""
    begun = time.monotonic()
    with pytest.raises(HoldfastError) as raised:
        call(store)
    return raised.value.code, time.monotonic() - begun


def test_every_call_ends_within_its_timeout_when_the_server_hangs(place, door, hung):
    timeout = 1.0
    # Half of the calls have a connection, the others wait for one.
    with (
        place.open(door, busy_timeout=timeout, pool=(8, 8)) as store,
        ThreadPoolExecutor(len(CALLS)) as pool,
    ):
        store.thread("a").save({"n": 0})
        store.conversations.create("c", messages=[{"role": "user", "content": "word"}])
        list(pool.map(lambda n: store.thread(f"t{n}").save({"n": n}), range(16)))
        hung.begin()
        found = {
            name: pool.submit(_outcome, call, store) for name, call in CALLS.items()
        }
        outcomes = {name: future.result() for name, future in found.items()}
        hung.end()

        assert _seconds(lambda: store.thread("a").get()) < SOON
        assert store.thread("b").save({"n": 1}).step == 1
    assert {code for code, _ in outcomes.values()} <= {"busy", "connection_lost"}
    # What works on all of the tables first asks whether the server lives.
    patient = {"stats", "verify", "compact", "search"}
    for name, (_, seconds) in outcomes.items():
        longest = 2 * timeout + 2 if name in patient else timeout
        assert seconds < longest + SLACK, outcomes


def test_a_store_cannot_be_opened_on_a_server_that_hangs(place, door, hung):
    place.open().close()
    hung.begin()

    begun = time.monotonic()
    with pytest.raises(HoldfastError) as raised:
        place.open(door, busy_timeout=1)

    assert raised.value.code in {"busy", "connection_lost"}
    assert time.monotonic() - begun < 4 + SLACK


def test_many_tasks_end_in_time_when_the_server_hangs(place, hung):
    async def work():
        options = {"schema": place.schema, "busy_timeout": 1, "pool": (1, 4)}
        async with holdfast.open_async(place.url, **options) as store:
            await store.thread("a").save({"n": 0})
            hung.begin()
            begun = time.monotonic()
            saves = [store.thread(f"t{n}").save({"n": n}) for n in range(50)]
            done = await asyncio.gather(*saves, return_exceptions=True)
            took = time.monotonic() - begun
            hung.end()
            saved = await store.thread("a").save({"n": 1})
            return done, took, saved

    done, took, saved = asyncio.run(work())

    assert {type(error) for error in done} <= {Busy, HoldfastError}
    assert took < 1 + SLACK
    assert saved.step == 2


def test_a_save_that_the_hung_server_made_after_all_is_repeated_by_its_id(place, hung):
    with place.open(busy_timeout=0.5) as store:
        store.thread("a").save({"n": 0})
        hung.begin()
        with raises(Busy):
            store.thread("a").save({"n": 1}, id="mine")
        hung.end()

        repeated = store.thread("a").save({"n": 1}, id="mine")

        assert [c.id for c in store.thread("a").history(1)] == ["mine"]
        assert repeated.step == 2
        assert store.thread("a").step == 2


# --- failover -------------------------------------------------------------------------


@pytest.fixture
def pair():
    """A primary with a standby that has every save before it is acknowledged."""
    primary = servers.Server(servers.NEWEST)
    standby = None
    try:
        primary.create()
        primary.start()
        standby = primary.standby()
        standby.start()
        with psycopg.connect(primary.url, autocommit=True) as admin:
            admin.execute("alter system set synchronous_standby_names = '*'")
            admin.execute("select pg_reload_conf()")
            _wait_for_standby(admin)
        yield primary, standby
    finally:
        primary.remove()
        if standby is not None:
            standby.remove()


def _wait_for_standby(admin):
    deadline = time.monotonic() + 30
    synchronous = "select 1 from pg_stat_replication where sync_state = 'sync'"
    while not admin.execute(synchronous).fetchall():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _both(primary, standby):
    hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
    return f"postgresql://holdfast@{hosts}/postgres?target_session_attrs=read-write"


def test_no_acknowledged_save_is_lost_when_a_standby_takes_over(pair, door):
    primary, standby = pair
    place = databases.Place(_both(primary, standby))
    with place.open(door, pool=(1, 6), busy_timeout=30) as store:
        with Load(store, 6) as load:
            load.wait_for(5)
            primary.kill()
            standby.promote()
            promoted = time.monotonic()
            load.wait_for(1)
            took = time.monotonic() - promoted
            load.wait_for(5)

        assert load.errors == []
        assert took < SOON + SLACK
        load.check(store)
    with databases.Place(standby.url, place.schema).open() as store:
        load.check(store)


def test_a_standby_serves_readers_but_not_the_feed(pair):
    primary, standby = pair
    place = databases.Place(primary.url)
    with place.open() as store:
        saved = store.thread("a").save({"messages": ["x" * 5000]})
        with psycopg.connect(standby.url, autocommit=True) as admin:
            replayed = "select pg_last_wal_replay_lsn() >= %s::pg_lsn"
            [(last,)] = place.run("select pg_current_wal_lsn()")
            while admin.execute(replayed, (last,)).fetchall() != [(True,)]:
                time.sleep(0.01)

    with databases.Place(standby.url, place.schema).open(read_only=True) as store:
        assert store.thread("a").load() == {"messages": ["x" * 5000]}
        assert store.thread("a").head == saved
        assert store.verify().problems == ()
        with raises(holdfast.Unsupported):
            store.changes()
    with raises(HoldfastError):
        databases.Place(standby.url, "new").open(busy_timeout=1)
