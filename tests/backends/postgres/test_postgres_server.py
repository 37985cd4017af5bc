"""What is particular to PostgreSQL: values, search, timeouts, addresses, poolers."""

from __future__ import annotations

import contextlib
import math
import socket
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

import holdfast
from conformance.values import alike
from holdfast import HoldfastError
from holdfast.testing import raises
from inner.postgres import refusal, timeout
from support import databases, poolers, servers
from support.stores import backend_of

WORDS = [
    "needle",
    "Straße",
    "100%",
    "a_b",
    "back\\slash",
    "tab\there",
    "naïve",
    "nul\0",
]


@pytest.fixture(scope="module", params=databases.CORNERS, ids="-".join)
def corner(request):
    """A server, and a door to it."""
    return request.param


@pytest.fixture(scope="module")
def address(corner):
    return servers.shared(corner[0])


@pytest.fixture
def place(address):
    with databases.place(address) as place:
        yield place


@pytest.fixture
def door(corner):
    return corner[1]


# --- values ---------------------------------------------------------------------------


VALUES = {
    "nul": "a\0b",
    "surrogate": "\ud800 alone",
    "pair": "\U0001f600",
    "minus zero": -0.0,
    "large": 2**70,
    "very large": -(10**400),
    "bytes": bytes(range(256)),
    "not a number": math.nan,
    "infinite": -math.inf,
    "nested": [{"\0": ("\ud800", -0.0, 2**70)}],
}


@pytest.mark.parametrize("size", [1, 5000], ids=["small", "large"])
def test_what_json_or_text_columns_would_change_comes_back(size, place, door):
    state = {name: [value] * size for name, value in VALUES.items()} | {"k\0": 1}
    with place.open(door) as store:
        store.thread("a").save(state, metadata=VALUES, journal=VALUES)

    with place.open(door) as store:
        head = store.thread("a").get()
        assert alike(store.thread("a").load(), state)
        assert alike(head.metadata, VALUES)
        assert alike(store.thread("a").journal(checkpoint=head), VALUES)


@pytest.mark.smoke
@pytest.mark.parametrize("door", databases.DOORS)
def test_saves_replace_nothing_that_would_have_to_be_vacuumed(place, door):
    with place.open(door, compress=True) as store:
        for n in range(40):
            store.thread("chat").append(messages=[f"{n} " + "filling " * 40])

    assert place.run("select count(*) from hf.segment") == [(40,)]


# --- search ---------------------------------------------------------------------------


def _fill(store):
    for n, word in enumerate(WORDS * 3):
        text = f"message {n} with {word} in it " + "filling " * 40
        store.conversations.create(
            f"c{n}", messages=[{"role": "user", "content": text}]
        )


def _found(store, words=WORDS):
    return {
        word: sorted(match.conversation for match in store.search(word, limit=None))
        for word in [*words, "NEEDLE", "strasse", "missing", "a"]
    }


@contextlib.contextmanager
def _database(place):
    """A database of its own, in which pg_trgm is not there yet."""
    name = f"base_{uuid.uuid4().hex[:8]}"
    place.run(f"create database {name}")
    url = f"{place.url.rpartition('/')[0]}/{name}"
    try:
        yield databases.Place(url)
    finally:
        place.run(f"drop database {name} with (force)")


def test_with_and_without_an_index_the_same_is_found(place, door):
    role = f"role_{uuid.uuid4().hex[:8]}"
    with _database(place) as base:
        base.run(f"create role {role} login password 'x'")
        base.run(f"create schema {base.schema} authorization {role}")
        limited = databases.Place(
            base.url.replace("holdfast@", f"{role}:x@"), base.schema
        )
        with limited.open(door) as store:
            _fill(store)
            assert "search" not in store.stats().abilities
            unindexed = _found(store)
            assert base.run(
                "select count(*) from pg_extension where extname = 'pg_trgm'"
            )
        with base.open(door) as store:
            assert "search" in store.stats().abilities
            indexed = _found(store)
            assert base.run("select count(*) > 0 from hf.search_stretch") == [(True,)]
        base.run(f"drop owned by {role} cascade")
        base.run(f"drop role {role}")

    assert indexed == unindexed
    assert len(indexed["needle"]) == 3
    assert indexed["missing"] == []


def test_a_search_asks_the_index_for_each_word(place):
    with place.open() as store:
        _fill(store)
        store.search("needle")
        sql = backend_of(store)._statements["candidates"].decode()
    values = {
        "form": 0, "kind": "conversation", "without": "pin", "after": 1 << 62,
        "position": 0, "owner": None, "agent": None, "limit": 10,
        "pattern_0": "%needle%", "pattern_1": "%words%", "pattern_2": "%three%",
        "pattern_3": "%four%", "remaining": ["%many%"],
    }  # fmt: skip

    with place.connect() as connection:
        # There are too few rows for it to be worth it.
        connection.execute("set enable_seqscan = off; set enable_indexscan = off")
        plan = connection.execute(f"explain {sql}", values).fetchall()

    assert any("search_stretch_text" in line for (line,) in plan)
    [asked] = [line for (line,) in plan if "Index Cond: ((text ~~" in line]
    for word in ("needle", "words", "three", "four"):
        assert f"'%{word}%'" in asked


def test_the_tables_of_the_index_begin_with_the_family_too(place):
    with place.open() as store:
        _fill(store)
        store.search("needle")

    found = place.run(
        "select c.relname, a.attname from pg_index i"
        " join pg_class c on c.oid = i.indrelid"
        " join pg_attribute a on a.attrelid = c.oid and a.attnum = i.indkey[0]"
        " where i.indisprimary and c.relname in ('search_thread', 'search_stretch')"
        " and c.relnamespace = to_regnamespace(%s)",
        (place.schema,),
    )
    assert sorted(found) == [("search_stretch", "family"), ("search_thread", "family")]


def test_the_extension_may_be_in_any_schema(place):
    with _database(place) as base:
        base.run("create schema elsewhere; create extension pg_trgm schema elsewhere")
        with base.open() as store:
            _fill(store)

            assert len(store.search("needle")) == 3


# --- sizes and times ------------------------------------------------------------------


def test_a_pool_makes_no_more_connections_than_it_may(place):
    with place.open(pool=(1, 3), busy_timeout=30) as store:
        threads = [store.thread(f"t{n}") for n in range(20)]
        with ThreadPoolExecutor(20) as pool:
            list(pool.map(lambda thread: thread.save({"n": 1}), threads))
        [(count,)] = place.run(
            "select count(*) from pg_stat_activity where application_name = 'holdfast'"
            " and query like %s",
            (f"%{place.schema}%",),
        )

    assert 1 <= count <= 3


def test_a_single_caller_makes_no_second_connection(place):
    url = f"{place.url}?application_name={place.schema}"
    activity = "select count(*) from pg_stat_activity where application_name = %s"
    with databases.Place(url, place.schema).open() as store:
        for n in range(9):
            store.thread("a").append(messages=[n])

        assert place.run(activity, (place.schema,)) == [(1,)]


def test_a_pool_of_which_all_are_in_use_is_busy(place, door):
    hasty = {"pool": (1, 1), "busy_timeout": 0.5}
    with place.open() as store, place.open(door, **hasty) as tried:
        store.thread("a").save({"n": 0})
        with place.connect() as connection:
            connection.execute(f"lock table {place.schema}.thread in exclusive mode")
            with ThreadPoolExecutor(4) as pool:
                saves = [
                    pool.submit(tried.thread("a").save, {"n": n}) for n in range(4)
                ]
                errors = [save.exception() for save in saves]
            assert {type(error) for error in errors} == {holdfast.Busy}

        in_doubt = [error for error in errors if error.code == "no_answer"]
        assert 2 <= store.thread("a").save({"n": 9}).step <= 2 + len(in_doubt)


@pytest.fixture
def long_cancel(monkeypatch):
    """Most of a call's time is kept for cancelling it: a crowded server needs some."""
    monkeypatch.setattr(timeout, "CANCEL_SHARE", 0.9)
    monkeypatch.setattr(timeout, "LONGEST_CANCEL", 60.0)


def test_a_save_that_was_given_up_is_not_made_later(place, door, long_cancel):
    with place.open(door, busy_timeout=15) as store:
        store.thread("a").save({"n": 0})
        with place.connect() as connection:
            connection.execute(f"select * from {place.schema}.thread for update")

            with raises(holdfast.Busy, code="busy"):
                store.thread("a").save({"n": 1})

        assert place.run("select count(*) from hf.checkpoint") == [(1,)]
        assert store.thread("a").load() == {"n": 0}


def test_work_on_everything_may_take_longer_than_the_timeout(place, door):
    """A slow server is not a hung one: it answers others."""
    with place.open() as patient:
        patient.thread("a").save({"n": 0})
    with place.open(door, busy_timeout=1) as store, place.connect() as connection:
        connection.execute(
            f"lock table {place.schema}.checkpoint in access exclusive mode"
        )
        with ThreadPoolExecutor(1) as pool:
            counting = pool.submit(store.stats)
            with raises(holdfast.Busy):
                store.thread("a").load()
            with raises(holdfast.Busy):
                store.thread("a").load()
            assert not counting.done()
            connection.rollback()

            assert counting.result().checkpoints == 1


def test_compacting_waits_no_longer_than_the_timeout_for_its_locks(place, door):
    with place.open() as store, place.open(door, busy_timeout=0.3) as hasty:
        store.thread("a").save({"n": 0})
        with place.connect() as connection:
            connection.execute(f"select * from {place.schema}.segment")

            with raises(holdfast.Busy):
                hasty.compact()

        store.compact()
        assert store.thread("a").load() == {"n": 0}


# --- addresses ------------------------------------------------------------------------


def test_of_several_hosts_the_one_that_can_be_written_to_is_used(place, door):
    host = place.url.rpartition("@")[2]
    several = place.url.replace(host, f"127.0.0.1:1,{host}")
    for url in (several, f"{several}?target_session_attrs=read-write"):
        with databases.Place(url, place.schema).open(door) as store:
            store.thread("a").save({"n": 1})
            assert store.thread("a").load() == {"n": 1}


# --- poolers --------------------------------------------------------------------------


def test_told_of_a_pooler_nothing_is_prepared_or_kept_for_a_session(place, door):
    with place.open(door, pgbouncer=True, pool=(1, 1)) as store:
        for n in range(20):
            store.thread("a").append(messages=[n])
            store.thread("a").load()
        backend = backend_of(store)
        connection = databases.only_connection(backend._connections)

        assert backend._settings.pooler.in_use
        assert _prepared(connection) == 0
        assert _subject(store.changes(timeout=0.1))


def _prepared(connection):
    """How many statements the session of a connection has prepared."""
    found = connection.pgconn.exec_(b"select count(*) from pg_prepared_statements")
    return int(found.get_value(0, 0))


def _subject(page):
    return [change.subject for change in page]


def test_a_pooler_that_was_not_told_of_is_noticed_by_what_it_loses(place, door):
    """A session without what was prepared in it is what such a pooler gives us."""
    with place.open(door, pool=(1, 1)) as store:
        for n in range(20):
            store.thread("a").append(messages=[n])
        connection = databases.only_connection(backend_of(store)._connections)
        assert _prepared(connection) > 0
        connection.pgconn.exec_(b"deallocate all")

        store.thread("a").append(messages=[20])

        assert backend_of(store)._settings.pooler.in_use
        assert store.thread("a").load() == {"messages": list(range(21))}


@pytest.fixture(params=poolers.POOLERS)
def pooled(request, place):
    """The same place behind a pooler with two connections to the server."""
    port = int(place.url.rpartition(":")[2].partition("/")[0])
    with poolers.POOLERS[request.param](port) as through:
        yield databases.Place(place.url.replace(str(port), str(through)), place.schema)


def test_behind_a_pooler_it_is_noticed_and_everything_works(pooled, door):
    with pooled.open(door, pool=(1, 8)) as store:
        assert backend_of(store)._settings.pooler.in_use

        def work(number):
            thread = store.thread(f"t{number}")
            for n in range(15):
                thread.append(messages=[n])
            thread.fork(f"f{number}").append(messages=["fork"])
            thread.label("end")
            return thread.load()["messages"]

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(work, range(8))) == [list(range(15))] * 8
        assert store.search("nothing").items == ()
        with ThreadPoolExecutor(1) as pool:
            cursor = 0
            while page := store.changes(cursor):
                cursor = page.cursor
            waiting = pool.submit(store.changes, cursor, timeout=60)
            saved = store.thread("a").save({"n": 1})
            assert _subject(waiting.result()) == [saved.id]
        store.delete("t0", "f0")
        assert store.verify().problems == ()


def test_a_save_that_was_given_up_behind_a_pooler_is_not_made_later(
    pooled, place, door, long_cancel
):
    with pooled.open(door, busy_timeout=15) as store:
        store.thread("a").save({"n": 0})
        with place.connect() as connection:
            connection.execute(f"select * from {place.schema}.thread for update")

            with raises(holdfast.Busy, code="busy"):
                store.thread("a").save({"n": 1})

        assert store.thread("a").save({"n": 2}).step == 2
        assert place.run("select count(*) from hf.checkpoint") == [(2,)]


def test_somebody_else_who_listens_on_the_port_is_given_up(door):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        begun = time.monotonic()

        with raises(HoldfastError):
            databases.DOORS[door](f"postgresql://a@127.0.0.1:{port}/b", busy_timeout=1)

        assert time.monotonic() - begun < 30


# --- which servers --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "version", "why"),
    [
        (150018, "PostgreSQL 15.18 on x86_64-pc-linux-gnu", None),
        (180001, "PostgreSQL 18.1 on aarch64-apple-darwin", None),
        (140023, "PostgreSQL 14.23 on x86_64", "PostgreSQL 14; use PostgreSQL 15"),
        (90624, "PostgreSQL 9.6.24 on x86_64", "PostgreSQL 9; use PostgreSQL 15"),
        (180000, "CockroachDB CCL v26.3.0 (x86_64-pc-linux-gnu)", "and NOTIFY; use"),
        (150012, "PostgreSQL 15.12-YB-2025.2.1.0-b0 on x86_64", "which lacks advisory"),
    ],
)
def test_a_server_that_cannot_keep_a_store_is_told_apart(number, version, why):
    found = refusal(number, version)

    assert (found is None) == (why is None)
    assert (why or "") in (found or "")
