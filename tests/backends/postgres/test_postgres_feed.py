"""The feed on PostgreSQL: complete in any order of commits, and told at once."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import holdfast
from holdfast.testing import FakeClock
from inner.postgres import FORMAT, listener
from support import databases, servers

TOLD = {"told": {}, "untold": {"pgbouncer": True}}


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


@pytest.fixture(params=TOLD)
def told(request):
    return TOLD[request.param]


def _subjects(changes):
    return [change.subject for change in changes]


def _all_of(store, cursor=0):
    """Everything behind a cursor, page by page, and the cursor after it."""
    found = []
    while page := store.changes(after=cursor, limit=2):
        found += page
        cursor = page.cursor
    return _subjects(found), cursor


# --- nothing is missed ----------------------------------------------------------------


def test_a_lower_number_that_is_committed_later_is_not_missed(place, door, told):
    with place.open(door, **told) as store, place.open() as other:
        store.thread("a").save({"n": 0})
        _, cursor = _all_of(store)
        with place.connect() as connection:
            late = other.using(connection).thread("late").save({"n": 1})
            early = store.thread("early").save({"n": 2})
            assert late.seq < early.seq

            seen, cursor = _all_of(store, cursor)
            assert seen == []
            connection.commit()

        assert _all_of(store, cursor)[0] == [late.id, early.id]


def test_a_lower_number_that_is_rolled_back_holds_nothing_up(place, door, told):
    with place.open(door, **told) as store, place.open() as other:
        store.thread("a").save({"n": 0})
        _, cursor = _all_of(store)
        with place.connect() as connection:
            other.using(connection).thread("late").save({"n": 1})
            saved = store.thread("early").save({"n": 2})
            connection.rollback()

        assert _all_of(store, cursor)[0] == [saved.id]


def test_a_writer_that_is_killed_holds_nothing_up(place, door):
    with place.open(door) as store, place.open() as other:
        connection = place.connect()
        other.using(connection).thread("late").save({"n": 1})
        saved = store.thread("early").save({"n": 2})
        place.run("select pg_terminate_backend(%s)", (connection.info.backend_pid,))

        page = store.changes(timeout=120)
        connection.close()

        assert _subjects(page) == [saved.id]


def test_who_waits_is_told_when_the_late_one_commits(place, door, told):
    with (
        place.open(door, **told) as store,
        place.open() as other,
        place.connect() as connection,
        ThreadPoolExecutor(1) as pool,
    ):
        late = other.using(connection).thread("late").save({"n": 1})
        early = other.thread("early").save({"n": 2})
        waiting = pool.submit(store.changes, timeout=120)
        connection.commit()

        assert _subjects(waiting.result()) == [late.id, early.id]


def test_what_is_in_the_own_transaction_is_told_after_it(place):
    with place.open() as store, place.connect() as connection:
        ours = store.using(connection)
        saved = ours.thread("a").save({"n": 1})

        assert _subjects(ours.changes()) == []
        connection.commit()
        assert _subjects(ours.changes()) == [saved.id]


def test_other_transactions_hold_nothing_up(place, door):
    """Only writers of this store count: not other tables, locks or schemas."""
    with place.open(door) as store, place.connect() as connection:
        connection.execute(f"create table {place.schema}.other (n int)")
        connection.execute("select pg_advisory_xact_lock_shared(1)")
        saved = store.thread("a").save({"n": 1})

        assert _subjects(store.changes()) == [saved.id]


def test_a_long_feed_with_gaps_comes_page_by_page(place, door):
    with place.open(door) as store:
        for n in range(5):
            store.thread("a").save({"n": n})
        place.run("select setval('hf.seq', 100000)")
        for n in range(5):
            store.thread("b").save({"n": n})

        ids, cursor = _all_of(store)

        assert len(ids) == 10
        assert cursor > 100_000
        assert _subjects(store.changes(limit=10)) == ids


def test_the_search_finds_what_was_committed_after_a_later_number(place, door):
    with place.open(door, clock=FakeClock()) as store, place.open() as other:
        for id_ in "ab":
            store.conversations.create(id_, messages=[_said("nothing yet")])
        with place.connect() as connection:
            other.using(connection).conversations.add("a", _said("the word"))
            store.conversations.add("b", _said("another"))

            assert len(store.search("the word")) == 0
            connection.commit()

        assert [match.conversation for match in store.search("the word")] == ["a"]


def _said(text):
    return {"role": "user", "content": text}


# --- told at once ---------------------------------------------------------------------


@pytest.fixture
def patient(monkeypatch):
    """Make listeners wait for notifications only, without reading again."""
    monkeypatch.setattr(listener, "LISTEN_SECONDS", 3600)


def _is_listening(place):
    query = f'listen "{place.schema}.changes"'
    counted = "select count(*) from pg_stat_activity where query = %s"
    return place.run(counted, (query,)) == [(1,)]


def _wait_until(condition):
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


CHANGES = {
    "save": lambda thread: thread.save({"n": 1}),
    "record": lambda thread: thread.record("key", 1),
    "fork": lambda thread: thread.fork("fork"),
    "delete": lambda thread: thread.delete(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_whoever_listens_is_woken_by_any_change(change, place, door, patient):
    with place.open(door) as store, place.open() as other:
        other.thread("a").save({"n": 0})
        cursor = store.changes().cursor
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(store.changes, cursor, timeout=120)
            _wait_until(lambda: _is_listening(place))

            CHANGES[change](other.thread("a"))

            assert len(waiting.result()) >= 1


def test_a_save_in_a_callers_transaction_wakes_when_it_commits(place, door, patient):
    with (
        place.open(door) as store,
        place.open() as other,
        place.connect() as connection,
        ThreadPoolExecutor(1) as pool,
    ):
        waiting = pool.submit(store.changes, timeout=120)
        _wait_until(lambda: _is_listening(place))
        saved = other.using(connection).thread("a").save({"n": 1})
        connection.commit()

        assert _subjects(waiting.result()) == [saved.id]


def test_all_who_wait_are_woken_on_one_connection(place, patient):
    with place.open(pool=(1, 4)) as store, place.open() as other:
        with ThreadPoolExecutor(20) as pool:
            waiting = [pool.submit(store.changes, timeout=120) for _ in range(20)]
            _wait_until(lambda: _is_listening(place))

            # Beside twenty listeners there is still a connection for a save.
            saved = store.thread("a").save({"n": 1})

            assert {_subjects(w.result())[0] for w in waiting} == {saved.id}
        assert other.thread("a").load() == {"n": 1}


def test_tasks_that_wait_take_no_connection_from_those_who_save(place, patient):
    async def work():
        options = {"schema": place.schema, "pool": (1, 2)}
        async with holdfast.open_async(place.url, **options) as store:
            waiting = [
                asyncio.create_task(store.changes(timeout=120)) for _ in range(50)
            ]
            while not _is_listening(place):
                await asyncio.sleep(0.01)
            saved = await store.thread("a").save({"n": 1})
            pages = await asyncio.gather(*waiting)
            return saved, pages

    saved, pages = asyncio.run(work())

    assert [_subjects(page) for page in pages] == [[saved.id]] * 50


def test_who_stops_waiting_leaves_it_to_the_others(place, patient):
    async def work():
        async with holdfast.open_async(place.url, schema=place.schema) as store:
            first = asyncio.create_task(store.changes(timeout=120))
            while not _is_listening(place):
                await asyncio.sleep(0.01)
            second = asyncio.create_task(store.changes(timeout=120))
            await asyncio.sleep(0.05)
            first.cancel()
            await asyncio.wait([first])
            saved = await store.thread("a").save({"n": 1})
            return saved, await second, first.cancelled()

    saved, page, was_cancelled = asyncio.run(work())

    assert was_cancelled
    assert _subjects(page) == [saved.id]


def test_a_listener_whose_connection_broke_listens_again(place, door, monkeypatch):
    with (
        place.open(door) as store,
        place.open() as other,
        ThreadPoolExecutor(1) as pool,
    ):
        waiting = pool.submit(store.changes, timeout=120)
        _wait_until(lambda: _is_listening(place))
        query = f'listen "{place.schema}.changes"'
        place.run(
            "select pg_terminate_backend(pid, 10000) from pg_stat_activity"
            " where query = %s",
            (query,),
        )
        _wait_until(lambda: _is_listening(place))
        monkeypatch.setattr(listener, "LISTEN_SECONDS", 3600)
        saved = other.thread("a").save({"n": 1})

        assert _subjects(waiting.result()) == [saved.id]


def test_a_store_can_be_closed_while_somebody_waits(place, door):
    with ThreadPoolExecutor(1) as pool:
        store = place.open(door)
        waiting = pool.submit(store.changes, timeout=120)
        _wait_until(lambda: _is_listening(place))

        store.close()

        assert isinstance(waiting.exception(timeout=120), holdfast.Closed)


def test_nobody_who_saves_waits_for_another_who_notifies(place):
    """A commit that notifies excludes all others that do: only one may at a time."""
    with place.open() as store, place.connect() as connection:
        connection.execute("begin")
        connection.execute(f"select {place.schema}.enter(%s)", [FORMAT << 2 | 1])
        done = threading.Event()

        def save():
            store.thread("a").save({"n": 1})
            done.set()

        thread = threading.Thread(target=save)
        thread.start()

        assert done.wait(120)
        thread.join()
        connection.rollback()
