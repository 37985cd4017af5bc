"""Servers of every version that are killed, restarted, hung or replaced, repeatedly.

test_postgres_faults.py has every kind of fault once.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

import holdfast
from holdfast import Busy, HoldfastError
from holdfast.testing import raises
from support import databases, outages, servers
from support.effort import seed_of
from support.outages import OURS, SLACK, SOON


@pytest.fixture(scope="module", params=servers.installations())
def server(request):
    """A server of our own: it is going to suffer."""
    with servers.server(servers.installations()[request.param]) as server:
        yield server


@pytest.fixture
def place(server):
    with databases.place(server.url) as place:
        yield place


@pytest.fixture(params=databases.DOORS)
def door(request):
    return request.param


# --- connections that die -------------------------------------------------------------


def test_saves_go_on_while_their_sessions_are_killed(place, door):
    seed = seed_of("killed sessions")
    chance = random.Random(seed)
    with place.open(door, pool=(1, 4), busy_timeout=30) as store:
        with outages.Load([store], 6) as load:
            for _ in range(30):
                found = [pid for (pid,) in place.run(f"select pid {OURS}")]
                for pid in chance.sample(found, min(2, len(found))):
                    place.run("select pg_terminate_backend(%s)", (pid,))
                time.sleep(chance.uniform(0, 0.01))
            load.wait_for(3)

        assert load.errors == [], f"seed {seed}"
        load.check(store)


def test_a_session_process_that_is_killed_takes_no_save_with_it(place, door):
    """The server ends all sessions then, and recovers."""
    with place.open(door, pool=(1, 4), busy_timeout=30) as store:
        with outages.Load([store], 4) as load:
            load.wait_for(3)
            [(pid,), *_] = place.run(f"select pid {OURS}")
            os.kill(pid, signal.SIGKILL)
            load.wait_for(3)

        assert load.errors == []
        load.check(store)


# --- restarts -------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["immediate", "fast"])
def test_a_store_goes_on_when_its_server_is_back(mode, server, place, door):
    with place.open(door, busy_timeout=SOON) as store:
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
        store.thread("a").save({"n": 2})

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

        assert time.monotonic() - back < SOON + SLACK
        assert [saved.step for saved in found] == [1] * 4


@pytest.mark.parametrize("mode", ["immediate", "fast"])
def test_no_acknowledged_save_is_lost_by_restarts_under_load(mode, server, place, door):
    with place.open(door, busy_timeout=30) as store:
        with outages.Load([store], 4) as load:
            for _ in range(3):
                load.wait_for(3)
                server.stop(mode)
                server.start()
            load.wait_for(3)

        assert load.errors == []
        load.check(store)


# --- a server that hangs --------------------------------------------------------------


def test_many_tasks_end_in_time_when_the_server_hangs(server, place):
    async def work():
        options = {"schema": place.schema, "busy_timeout": 1, "pool": (1, 4)}
        async with holdfast.open_async(place.url, **options) as store:
            await store.thread("a").save({"n": 0})
            with outages.hung(server):
                begun = time.monotonic()
                saves = [store.thread(f"t{n}").save({"n": n}) for n in range(50)]
                done = await asyncio.gather(*saves, return_exceptions=True)
                took = time.monotonic() - begun
            saved = await store.thread("a").save({"n": 1})
            return done, took, saved

    done, took, saved = asyncio.run(work())

    assert {type(error) for error in done} <= {Busy, HoldfastError}
    assert took < 1 + SLACK
    assert saved.step == 2


def test_a_save_that_the_hung_server_made_after_all_is_repeated_by_its_id(
    server, place, door
):
    with place.open(door, busy_timeout=0.5) as store:
        store.thread("a").save({"n": 0})
        with outages.hung(server), raises(Busy):
            store.thread("a").save({"n": 1}, id="mine")

        repeated = store.thread("a").save({"n": 1}, id="mine")

        assert [c.id for c in store.thread("a").history(1)] == ["mine"]
        assert repeated.step == 2
        assert store.thread("a").step == 2


# --- failover -------------------------------------------------------------------------


@pytest.fixture(params=servers.installations())
def pair(request):
    with outages.pair(servers.installations()[request.param]) as pair:
        yield pair


def test_no_acknowledged_save_is_lost_when_a_standby_takes_over(pair, door):
    primary, standby = pair
    place = databases.Place(outages.either(primary, standby))
    with place.open(door, pool=(1, 6), busy_timeout=30) as store:
        with outages.Load([store], 6) as load:
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
            outages.wait_until(
                lambda: admin.execute(replayed, (last,)).fetchall() == [(True,)]
            )

    with databases.Place(standby.url, place.schema).open(read_only=True) as store:
        assert store.thread("a").load() == {"messages": ["x" * 5000]}
        assert store.thread("a").head == saved
        assert store.verify().problems == ()
        with raises(holdfast.Unsupported):
            store.changes()
    with raises(HoldfastError):
        databases.Place(standby.url, "new").open(busy_timeout=1)
