"""Many at once on PostgreSQL: processes, threads, tasks and forks lose nothing."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

import holdfast
from holdfast import Conflict
from holdfast.testing import raises
from inner.postgres import EndingPool, Settings
from support import databases, servers
from support.effort import seed_of
from support.folders import PROGRAMS
from support.many_processes import PROCESSES, CrowdTests, by_writer, is_one_line
from support.programs import ENVIRONMENT, run_program
from support.scenario import problems_of
from support.stores import backend_of


@pytest.fixture
def url():
    """A database of its own: the address alone leads to the store."""
    with databases.database(servers.shared(servers.NAMES[-1])) as url:
        yield url


@pytest.fixture
def oldest():
    """As `url`, on the oldest server: processes are dear, so each is tried on one."""
    with databases.database(servers.shared(servers.NAMES[0])) as url:
        yield url


# --- processes ------------------------------------------------------------------------


class TestProcesses(CrowdTests):
    count = 20

    @pytest.fixture
    def place(self, oldest):
        return oldest


@pytest.mark.parametrize("told", ["told", "untold"])
def test_who_follows_eight_writers_is_told_everything_once_and_in_order(told, oldest):
    [report] = run_program("follow_changes", oldest, PROCESSES, 25, told)

    saved = sorted(itertools.chain(*report["saved"]))
    assert report["told"] == saved
    assert len(saved) == PROCESSES * 25 * 2


@pytest.mark.parametrize("door", databases.DOORS)
def test_what_killed_writers_had_saved_is_there_and_nothing_by_halves(door, oldest):
    seed = seed_of("kills on PostgreSQL")
    base, _, _ = oldest.rpartition("/")
    with databases.database(oldest, "0.db"):
        [report] = run_program("random_kills", "/", seed, 12, base, door)

    assert report["wrong"] == [], f"seed {seed}"
    assert report["acknowledged"] > 10


# --- one process ----------------------------------------------------------------------


def test_thirty_two_threads_share_ten_connections(url):
    def work(number):
        thread = store.thread(f"own {number}")
        for n in range(15):
            thread.append(log=[n])
        return thread.load()["log"]

    with (
        holdfast.open(url, pool=(1, 10), busy_timeout=60) as store,
        ThreadPoolExecutor(32) as pool,
    ):
        logs = list(pool.map(work, range(32)))

        assert logs == [list(range(15))] * 32
        seqs = [change.seq for change in store.changes(limit=1000)]
        assert seqs == sorted(set(seqs))
        assert len(seqs) == 32 * 15
        assert problems_of(store) == []


def test_sixteen_threads_append_to_one_thread(url):
    def work(number):
        thread = store.thread("shared")
        return [
            thread.append(log=[{"process": number, "n": n}]).step for n in range(10)
        ]

    with (
        holdfast.open(url, busy_timeout=60) as store,
        ThreadPoolExecutor(16) as pool,
    ):
        steps = list(pool.map(work, range(16)))

        log = store.thread("shared").load()["log"]
        assert by_writer(log) == {number: list(range(10)) for number in range(16)}
        assert sorted(itertools.chain(*steps)) == list(range(1, 161))
        assert is_one_line(store.thread("shared"))


def test_tags_set_at_once_through_different_threads_are_all_there(url):
    """Both change the same row, though each holds another thread of its family."""
    with (
        holdfast.open(url, busy_timeout=60) as store,
        ThreadPoolExecutor(8) as pool,
    ):
        saved = store.thread("main").save({"n": 0})
        for n in range(8):
            store.thread("main").fork(f"fork {n}")

        def tag(number):
            for n in range(10):
                store.thread(f"fork {number}").tag(f"{number}:{n}", ref=saved)

        list(pool.map(tag, range(8)))

        tags = store.get(saved.id).tags
    assert sorted(tags) == sorted(f"{a}:{b}" for a in range(8) for b in range(10))


def test_forks_that_reach_for_the_same_segments_both_save(url):
    with (
        holdfast.open(url, busy_timeout=60) as store,
        ThreadPoolExecutor(8) as pool,
    ):
        store.thread("main").save(
            {"log": [{"n": n, "text": "x" * 400} for n in range(9)]}
        )
        for n in range(8):
            store.thread("main").fork(f"fork {n}")

        def grow(number):
            thread = store.thread(f"fork {number}")
            for n in range(8):
                thread.append(log=[{"fork": number, "n": n, "text": "y" * 400}])
            return [entry["n"] for entry in thread.load()["log"][9:]]

        assert list(pool.map(grow, range(8))) == [list(range(8))] * 8
        assert problems_of(store) == []


def test_a_name_taken_by_many_at_once_is_one_threads(url):
    with (
        holdfast.open(url, busy_timeout=60) as store,
        ThreadPoolExecutor(8) as pool,
    ):

        def begin(number):
            try:
                return store.thread("one").save({"by": number}, expect=None)
            except Conflict as conflict:
                return conflict.code

        for _ in range(5):
            found = list(pool.map(begin, range(8)))
            assert Counter(f for f in found if isinstance(f, str)) == {"head_moved": 7}
            store.thread("one").delete()


# --- tasks ----------------------------------------------------------------------------


def test_forty_tasks_append_to_one_thread(url):
    async def work():
        async with holdfast.open_async(url, busy_timeout=60) as store:
            thread = store.thread("shared")
            saves = [thread.append(log=[n]) for n in range(40)]
            steps = [checkpoint.step for checkpoint in await asyncio.gather(*saves)]
            return steps, (await thread.load())["log"]

    steps, log = asyncio.run(work())

    assert sorted(steps) == list(range(1, 41))
    assert sorted(log) == list(range(40))


def test_cancelled_appends_are_there_or_not_and_the_others_are(url):
    seed = seed_of("cancels on PostgreSQL")
    chance = random.Random(seed)

    async def work():
        async with holdfast.open_async(url, pool=(1, 5), busy_timeout=60) as store:
            threads = [store.thread(f"t{n}") for n in range(20)]
            tasks = [
                asyncio.create_task(threads[n % 20].append(log=[n])) for n in range(400)
            ]
            for n in chance.sample(range(400), 200):
                await asyncio.sleep(chance.choice([0, 0, 0.001, 0.003]))
                tasks[n].cancel()
                if chance.random() < 0.5:
                    await asyncio.sleep(0)
                    tasks[n].cancel()
            done = await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.gather(*(thread.append(log=[400]) for thread in threads))
            return done, await _is_whole(backend_of(store)._connections._pool)

    done, is_whole = asyncio.run(work())

    acknowledged = [n for n, saved in enumerate(done) if not _was_cancelled(saved)]
    with holdfast.open(url) as store:
        threads = [store.thread(f"t{n}") for n in range(20)]
        found = Counter(n for thread in threads for n in thread.load()["log"])
        assert all(found[n] == 1 for n in acknowledged), f"seed {seed}"
        assert [n for n in found if found[n] > 1] == [400], f"seed {seed}"
        assert found[400] == 20, f"seed {seed}"
        assert all(map(is_one_line, threads))
        assert problems_of(store) == []
    assert len(acknowledged) < 400, f"seed {seed}: nothing was cancelled"
    assert is_whole, f"seed {seed}: a connection was lost"


async def _is_whole(pool):
    """Whether all connections come back, those that are being replaced included."""
    deadline = time.monotonic() + 120
    while True:
        stats = pool.get_stats()
        if stats["pool_available"] == stats["pool_size"] >= 1:
            return True
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.01)


def _was_cancelled(saved):
    if isinstance(saved, asyncio.CancelledError):
        return True
    if isinstance(saved, BaseException):
        raise saved
    return False


def test_a_save_cancelled_while_it_waits_for_a_lock_leaves_nothing(url):
    async def work():
        async with holdfast.open_async(url, pool=(1, 1)) as store:
            await store.thread("a").save({"n": 0})
            place = databases.Place(url, "holdfast")
            with place.connect() as connection:
                connection.execute("select * from holdfast.thread for update")
                save = asyncio.create_task(store.thread("a").save({"n": 1}))
                while not place.run(
                    "select 1 from pg_stat_activity where wait_event_type = 'Lock'"
                ):
                    await asyncio.sleep(0.01)
                save.cancel()
                await asyncio.wait([save])
            assert save.cancelled()
            return await store.thread("a").save({"n": 2})

    assert asyncio.run(work()).step == 2


def test_a_store_is_opened_once_for_each_event_loop(url):
    opened = []

    async def begin():
        opened.append(await holdfast.open_async(url))
        await opened[0].thread("a").save({"n": 0})

    async def go_on():
        saved = await opened[0].thread("a").save({"n": 1})
        await opened[0].close()
        return saved.step

    asyncio.run(begin())

    # The first loop is over: the connections it left behind are not used.
    assert asyncio.run(go_on()) == 2


def test_two_running_loops_do_not_share_connections(url):
    begun, over = threading.Event(), threading.Event()
    opened = []

    async def hold():
        opened.append(await holdfast.open_async(url))
        begun.set()
        while not over.is_set():
            await asyncio.sleep(0.01)
        await opened[0].thread("a").save({"n": 0})
        await opened[0].close()

    async def intrude():
        with raises(holdfast.HoldfastError, "other_loop"):
            await opened[0].thread("a").save({"n": 0})
        with raises(holdfast.HoldfastError, "other_loop"):
            await opened[0].close()

    holder = threading.Thread(target=asyncio.run, args=(hold(),))
    holder.start()
    begun.wait()
    asyncio.run(intrude())
    over.set()
    holder.join()
    with holdfast.open(url) as store:
        assert store.thread("a").load() == {"n": 0}


def test_a_store_is_closed_after_the_end_of_its_loop(url):
    async def follow():
        store = await holdfast.open_async(url)
        await store.thread("a").save({"n": 0})
        after = (await store.changes()).cursor
        asyncio.create_task(store.changes(after=after, timeout=60))  # noqa: RUF006
        await asyncio.sleep(0.1)
        return store

    store = asyncio.run(follow())
    asyncio.run(asyncio.wait_for(store.close(), 60))

    text = "select count(*) from pg_stat_activity where datname = current_database()"
    with psycopg.connect(url) as connection:
        while connection.execute(text).fetchall() != [(1,)]:
            connection.rollback()  # its statistics are of one moment
            time.sleep(0.01)


# --- interrupts -----------------------------------------------------------------------


@pytest.mark.parametrize(("step", "least"), [(3, 1), (3, 0)])
def test_a_call_that_a_signal_ends_takes_no_connection_with_it(step, least, oldest):
    [(ended, longest, forked)] = run_program("interrupt_calls", oldest, step, least)

    assert ended > 30
    assert longest < 2
    assert forked


def test_the_handler_of_a_signal_saves_wherever_it_interrupts_a_call(oldest):
    [(calls, called, handled)] = run_program("save_in_handlers", oldest, 3)

    assert calls > 30
    assert (called, handled) == (calls, calls - 1)


def test_calls_in_flight_end_well_when_a_store_is_closed(url):
    async def work():
        store = await holdfast.open_async(url, pool=(1, 4))
        saves = [
            asyncio.create_task(store.thread(f"t{n}").save({"n": n})) for n in range(40)
        ]
        await asyncio.sleep(0.02)
        await store.close()
        return await asyncio.gather(*saves, return_exceptions=True)

    done = asyncio.run(work())

    with holdfast.open(url) as store:
        for n, saved in enumerate(done):
            found = store.thread(f"t{n}").head
            if isinstance(saved, BaseException):
                assert isinstance(saved, holdfast.Closed)
            else:
                assert found == saved


# --- forks and ends -------------------------------------------------------------------


@pytest.mark.parametrize(
    "case", ["together", "parent_closes", "child_exits", "beside_threads"]
)
def test_what_is_saved_beside_a_fork_is_there(case, url):
    [acknowledged] = run_program("forked_children", case, url)

    with holdfast.open(url) as store:
        found = {name: store.thread(name).step for name in acknowledged}
        assert found == acknowledged
        assert problems_of(store) == []


@pytest.mark.parametrize("door", [*databases.DOORS, "connecting"])
def test_a_program_that_does_not_close_its_store_ends_all_the_same(door, url):
    program = str(PROGRAMS / "end_without_closing.py")

    ended = subprocess.run(
        [sys.executable, program, url, door],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=ENVIRONMENT,
    )

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "2\n", "")
    with holdfast.open(url) as store:
        assert store.thread("left").load() == {"log": [1, 2]}


def test_a_loop_ends_though_a_cancellation_was_lost_while_its_pool_connected(url):
    async def connect_whatever_comes():
        with contextlib.suppress(asyncio.CancelledError):  # as asyncio.wait_for may do
            await asyncio.Event().wait()
        return await psycopg.AsyncConnection.connect(url)

    async def leave():
        await EndingPool(connect_whatever_comes, settings).open()
        await asyncio.sleep(0)  # the worker begins to connect

    settings = Settings(conninfo=url)
    loop = threading.Thread(target=asyncio.run, args=(leave(),), daemon=True)
    loop.start()
    loop.join(120)

    assert not loop.is_alive()
