"""Transactions that lock the same rows take turns, and never wait in a circle.

Every test fails if the server's log tells of a deadlock; the store would repeat what
the server ended, a second later.
"""

from __future__ import annotations

import itertools
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from holdfast import Conflict, Retention
from holdfast.backends import NEW_THREAD, UNSET, Details, Entry, Start, Write
from holdfast.testing.conformance.bridge import finished
from holdfast.testing.trials.scenario import problems_of
from support import databases, servers

WAITING = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'"


@pytest.fixture
def place():
    with databases.place(servers.shared(servers.NAMES[-1])) as place:
        yield place


async def _commit(context, writes):
    return await context.backend.commit(writes)


def _write(name, **fields):
    entry = Entry(name, "", f"key of {name}", b"1", 1)
    return Write(thread=name, at=1, expect=UNSET, entries=(entry,), **fields)


def _describe(name, **fields):
    details = Details(owner="me")
    return Write(thread=name, at=1, expect=UNSET, details=details, **fields)


def _made(store, writes):
    """Whether a commit was made; false if another came first."""
    try:
        finished(store.runner.run(_commit, writes))
    except Conflict:
        return False
    return True


def _until_waiting(place, count):
    deadline = time.monotonic() + 120
    while place.run(WAITING) < [(count,)]:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _side_by_side(place, gate, one, other):
    """Whether each of two commits was made, both begun while ``gate`` stops them."""
    with (
        place.open(busy_timeout=120) as store,
        ThreadPoolExecutor(2) as pool,
        place.connect() as connection,
    ):
        connection.execute(gate.replace("hf.", f"{place.schema}."))
        first = pool.submit(_made, store, one)
        _until_waiting(place, 1)
        second = pool.submit(_made, store, other)
        _until_waiting(place, 2)
        connection.rollback()
        return first.result(), second.result()


@pytest.mark.parametrize("kind", [_write, _describe])
def test_commits_to_the_same_threads_in_opposite_orders_take_turns(place, kind):
    with place.open() as store:
        for name in ("a", "b", "gate 1", "gate 2"):
            store.thread(name).save({"n": 0})

    made = _side_by_side(
        place,
        "select from hf.thread where name like 'gate%' for update",
        [kind("a"), kind("gate 1"), kind("b")],
        [kind("b"), kind("gate 2"), kind("a")],
    )

    assert made == (True, True)


def test_of_two_that_begin_the_same_threads_in_opposite_orders_one_does(place):
    with place.open() as store:
        head = store.thread("origin").save({"n": 0})
    start = Start(head=head)

    def begins(*names):
        return [Write(thread=n, at=1, expect=None, start=start) for n in names]

    made = _side_by_side(
        place,
        "insert into hf.directory (name, number, family)"
        " values ('m', 1000, 1000), ('n', 1001, 1001)",
        begins("a", "m", "z"),
        begins("z", "n", "a"),
    )

    assert made == (True, False)


def test_two_that_expect_a_head_and_then_write_to_its_thread_take_turns(place):
    with place.open() as store:
        head = store.thread("a").save({"n": 0})
        store.thread("gate 1").save({"n": 0})
        store.thread("gate 2").save({"n": 0})
    expects = Write(thread="a", at=1, expect=head)

    made = _side_by_side(
        place,
        "select from hf.thread where name like 'gate%' for update",
        [expects, _write("gate 1"), _write("a", start=NEW_THREAD)],
        [expects, _write("gate 2"), _write("a", start=NEW_THREAD)],
    )

    assert made == (True, True)


def test_a_crowd_that_does_everything_to_one_family_waits_in_no_circle(place):
    """Each changes a row of its own and needs that others of the family stay."""
    rounds = 12

    def work(number):
        thread, other = store.thread(f"t{number}"), store.thread(f"t{5 - number}")
        for n in range(rounds):
            saved = thread.append(log=[n])
            thread.tag(f"{number}:{n}", ref=roots[n % 2])
            other.describe(metadata={"by": number})
            thread.consume(f"grant {n}")
            fork = thread.fork(f"fork {number} {n}", at=saved)
            thread.rewind("@~1")
            fork.delete()

    def clean():
        for _ in range(rounds):
            store.prune(Retention(last=3))

    with (
        place.open(busy_timeout=30, pool=(1, 8)) as store,
        ThreadPoolExecutor(8) as pool,
    ):
        root = store.thread("root")
        roots = [root.save({"log": [n]}, label=f"root {n}") for n in range(2)]
        for n in range(6):
            root.fork(f"t{n}")
        working = [pool.submit(work, n) for n in range(6)]
        cleaning = [pool.submit(clean) for _ in range(2)]
        for future in itertools.chain(working, cleaning):
            future.result()

        assert problems_of(store) == []
        tags = sorted(t for root in roots for t in store.get(root.id).tags)
        assert tags == sorted(f"{a}:{b}" for a in range(6) for b in range(rounds))


def test_a_prune_takes_one_lock_for_all_that_it_removes(place):
    """The server has room for some thousand advisory locks, for all its clients."""
    with place.open() as store, place.connect() as connection:
        for n in range(20):
            store.thread(f"t{n}").save({"n": 0})
            store.thread(f"t{n}").save({"n": 1})

        store.using(connection).prune(Retention(last=1))

        [(locks,)] = connection.execute(
            "select count(*) from pg_locks"
            " where locktype = 'advisory' and pid = pg_backend_pid()"
        )
    assert locks == 1


def test_others_save_between_the_transactions_of_a_prune(place):
    with place.open() as store, place.open(busy_timeout=20) as rival:
        for n in range(40):
            store.thread(f"t{n}").save({"n": 0})
            store.thread(f"t{n}").save({"n": 1})

        def save(done, _of):
            rival.thread("t0").save({"done": done})
            rival.thread("t39").save({"done": done})

        store.prune(Retention(last=1), progress=save)

        assert store.thread("t0").load() == store.thread("t39").load() == {"done": 40}
        assert store.thread("t39").step == 4
        assert problems_of(store) == []
