"""Saving on the caller's own connection: with the caller's data, or not at all."""

from __future__ import annotations

import asyncio

import psycopg
import pytest
from psycopg.rows import dict_row

import holdfast
from holdfast import Conflict, HoldfastError, Unstorable, Unsupported
from holdfast.testing import raises
from support import databases, servers


@pytest.fixture(scope="module", params=servers.NAMES)
def place(request):
    with databases.place(servers.shared(request.param)) as place:
        yield place


@pytest.fixture
def store(place):
    with place.open() as store:
        place.run("create table if not exists hf.booking (n int)")
        place.run("delete from hf.booking")
        store.delete(*(thread.id for thread in store.threads()), "none")
        yield store


def _book(place, connection, n):
    connection.execute(f"insert into {place.schema}.booking values (%s)", (n,))


def _bookings(place):
    return [n for (n,) in place.run("select n from hf.booking order by n")]


def test_a_save_is_committed_with_the_callers_data(place, store):
    with place.connect() as connection:
        store.using(connection).thread("a").save({"n": 1}, expect=None)
        _book(place, connection, 1)
        assert store.thread("a").head is None

    assert store.thread("a").load() == {"n": 1}
    assert _bookings(place) == [1]


def test_a_save_is_rolled_back_with_the_callers_data(place, store):
    store.thread("b").save({"n": 0}, expect=None)
    with place.connect() as connection:
        ours = store.using(connection)
        ours.thread("b").append(messages=["x" * 1000])
        ours.thread("b").record("key", 1)
        ours.thread("b").fork("b2")
        ours.thread("b").label("x")
        _book(place, connection, 1)
        connection.rollback()

        assert ours.thread("b").load() == {"n": 0}
        assert ours.thread("b").save({"n": 1}).step == 2

    assert store.thread("b").load() == {"n": 1}
    assert store.thread("b").recorded("key") is None
    assert store.thread("b2").head is None
    assert _bookings(place) == []


def test_what_is_saved_is_seen_inside_the_transaction(place, store):
    with place.connect() as connection:
        ours = store.using(connection)
        for n in range(3):
            ours.thread("c").append(messages=[n])

        assert ours.thread("c").load() == {"messages": [0, 1, 2]}
        assert [c.step for c in ours.thread("c").history()] == [3, 2, 1]
        assert store.thread("c").head is None


def test_a_conflict_does_not_spoil_the_callers_transaction(place, store):
    head = store.thread("d").save({"n": 0}, expect=None)
    store.thread("d").save({"n": 1})

    with place.connect() as connection:
        ours = store.using(connection)
        _book(place, connection, 1)
        with raises(Conflict, "head_moved"):
            ours.thread("d").save({"n": 2}, expect=head)
        with raises(Conflict, "id_taken"):
            ours.thread("d").save({"n": 2}, id=head.id)
        _book(place, connection, 2)
        ours.thread("d").save({"n": 3})

    assert store.thread("d").load() == {"n": 3}
    assert _bookings(place) == [1, 2]


def test_without_a_transaction_every_save_is_one(place, store):
    with place.connect(autocommit=True) as connection:
        store.using(connection).thread("e").save({"n": 1}, expect=None)

        assert store.thread("e").load() == {"n": 1}


def test_the_callers_own_blocks_can_be_nested(place, store):
    with place.connect() as connection, connection.transaction():
        ours = store.using(connection)
        ours.thread("f").save({"n": 1}, expect=None)
        with connection.transaction(force_rollback=True):
            ours.thread("f").save({"n": 2})

    assert store.thread("f").load() == {"n": 1}


def test_however_the_caller_likes_rows_and_cursors(place, store):
    options = {"row_factory": dict_row, "cursor_factory": psycopg.ClientCursor}
    with place.connect(**options) as connection:
        ours = store.using(connection)
        ours.thread("g").save({"messages": ["x" * 1000]}, expect=None)
        ours.thread("g").append(messages=[1])

        assert ours.thread("g").load() == {"messages": ["x" * 1000, 1]}


def test_a_view_that_is_too_old_is_a_conflict(place, store):
    store.thread("h").save({"n": 0}, expect=None)
    with place.connect() as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        ours = store.using(connection)
        assert ours.thread("h").load() == {"n": 0}
        store.thread("h").save({"n": 1})

        with raises(Conflict, "serialization"):
            ours.thread("h").save({"n": 2})
        _book(place, connection, 1)

    assert store.thread("h").load() == {"n": 1}
    assert _bookings(place) == [1]


def test_changes_cannot_be_read_in_a_view_that_stands_still(place, store):
    with place.connect() as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ

        with raises(Unsupported):
            store.using(connection).changes()


def test_the_callers_durability_is_left_alone(place, store):
    with place.connect() as connection:
        connection.execute("set local synchronous_commit = remote_write")
        store.using(connection).thread("i").save({"n": 1}, expect=None)

        [level] = connection.execute("show synchronous_commit").fetchone()

    assert level == "remote_write"


def test_a_store_that_may_lose_saves_does_not_make_the_callers_data_so(place, store):
    with (
        place.open(durability="normal") as careless,
        place.connect() as connection,
    ):
        careless.using(connection).thread("j").save({"n": 1}, expect=None)

        [level] = connection.execute("show synchronous_commit").fetchone()

    assert level == "on"


def test_the_callers_connection_stays_open(place, store):
    with place.connect() as connection:
        store.using(connection).close()

        assert connection.execute("select 1").fetchone() == (1,)


def test_a_broken_connection_is_told_and_not_replaced(place, store):
    connection = place.connect()
    ours = store.using(connection)
    ours.thread("k").save({"n": 1}, expect=None)
    place.run("select pg_terminate_backend(%s)", (connection.info.backend_pid,))

    with raises(HoldfastError, "connection_lost"):
        ours.thread("k").save({"n": 2})

    connection.close()
    assert store.thread("k").head is None


def test_a_read_only_transaction_refuses_and_stays_open(place, store):
    with place.connect() as connection:
        connection.read_only = True
        ours = store.using(connection)

        with raises(Unsupported, "read_only"):
            ours.thread("l").save({"n": 1}, expect=None)

        assert ours.thread("l").head is None


def test_what_is_no_connection_is_refused(place, store):
    for wrong in (object(), "postgresql://", None):
        with raises(Unstorable):
            store.using(wrong)


def test_the_wrong_kind_of_connection_is_refused(place, store):
    async def wrong_kind():
        async with await psycopg.AsyncConnection.connect(place.url) as connection:
            with raises(Unstorable):
                store.using(connection)

    asyncio.run(wrong_kind())
    with (
        place.open("awaited") as awaited,
        place.connect() as connection,
        raises(Unstorable),
    ):
        awaited.using(connection)


def test_an_awaited_save_is_part_of_the_callers_transaction(place, store):
    async def work():
        url, schema = place.url, place.schema
        async with (
            holdfast.open_async(url, schema=schema) as awaited,
            await psycopg.AsyncConnection.connect(url) as connection,
        ):
            ours = awaited.using(connection)
            head = await ours.thread("m").save({"n": 1}, expect=None)
            await ours.thread("m").save({"n": 2})
            with raises(Conflict, "head_moved"):
                await ours.thread("m").save({"n": 3}, expect=head)
            assert await awaited.thread("m").head is None
            await connection.commit()
            await ours.thread("m").save({"n": 4})
            await connection.rollback()
            return await ours.thread("m").load(), await awaited.thread("m").load()

    assert asyncio.run(work()) == ({"n": 2}, {"n": 2})
