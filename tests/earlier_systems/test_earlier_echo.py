"""What broke in an earlier system, echo, each mistake by its number.

Mistakes of importers, agents, loops, encryption, damaged files and crashes are tested
elsewhere.
"""

import os
import stat
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import apsw
import pytest

import holdfast
from holdfast import Conflict, Corrupt, FormatMismatch, HoldfastError, Retention
from holdfast.faults import Fault, FaultyDisk, disk_full
from holdfast.testing import raises
from inner.sqlite import connect, page_checksums
from support.earlier_systems import DAY, steps
from support.samples import LONG


@pytest.mark.parametrize(
    "content",
    [
        b"garbage",
        b"\0" * 8192,
        b'{"session": [{"messages": []}]}' * 400,
        b"SQLite format 3\0" + b"torn" * 30,
    ],
    ids=["garbage", "zeros", "json", "torn"],
)
def test_0_1_a_file_that_cannot_be_read_is_left_as_it_is(tmp_path, content):
    path = tmp_path / "store.db"
    path.write_bytes(content)

    with raises(HoldfastError):
        holdfast.open(path)

    assert path.read_bytes() == content


def test_0_1_the_file_of_another_application_is_left_as_it_is(tmp_path):
    path = tmp_path / "theirs.db"
    other = apsw.Connection(str(path))
    other.execute("create table notes (text); insert into notes values ('dear')")
    other.close()
    before = path.read_bytes()

    with raises(FormatMismatch):
        holdfast.open(path)

    assert path.read_bytes() == before


def test_0_2_one_bad_record_of_a_hundred_costs_only_itself(tmp_path):
    """And 2.2 and 4.6: the others are read, the bad one is named and the rest saved."""
    path = tmp_path / "store.db"
    with holdfast.open(path) as store:
        for n in range(100):
            store.thread(f"thread {n}").save({"text": f"{n} " + LONG})
    db = connect(str(path), read_only=False, busy_timeout=1, vfs=page_checksums())
    [(key,)] = db.execute("select key from segment order by key limit 1 offset 41")
    db.execute("update segment set data = zeroblob(length(data)) where key = ?", (key,))
    db.close()

    with holdfast.open(path) as store:
        bad = [t.id for t in store.threads() if not is_readable(store.thread(t.id))]
        [problem] = store.verify().problems
        salvaged = store.salvage(str(tmp_path / "salvaged.db"))

    assert bad == ["thread 41"]
    assert problem.thread == "thread 41"
    assert (salvaged.checkpoints, len(salvaged.lost)) == (99, 1)


def is_readable(thread):
    try:
        return bool(thread.load())
    except Corrupt:
        return False


def test_0_4_what_could_not_be_made_durable_is_not_there_and_a_retry_is_made_once(
    tmp_path,
):
    disk = FaultyDisk("full disk")
    with disk.open(str(tmp_path / "store.db")) as store:
        chat = store.thread("chat")
        chat.save({"n": 1})
        disk.arm(Fault(at=1, effect=disk_full))
        with raises(HoldfastError, "disk_full"):
            chat.save({"n": 2, "text": LONG}, id="again")
        disk.heal()

        assert chat.load() == {"n": 1}
        chat.save({"n": 2, "text": LONG}, id="again")
        assert chat.step == 2
    disk.remove()


def test_0_3_concurrent_saves_all_succeed_and_readers_see_whole_states(store):
    done = threading.Event()

    def save(name):
        for n in range(25):
            store.thread(f"{name}").append(m=[f"{n} {LONG}"])

    def are_whole_until_done():
        while not done.is_set():
            for record in store.threads():
                found = store.thread(record.id).load()["m"]
                if found != [f"{n} {LONG}" for n in range(len(found))]:
                    return False
        return True

    with ThreadPoolExecutor(9) as pool:
        watcher = pool.submit(are_whole_until_done)
        try:
            list(pool.map(save, range(8)))
        finally:
            done.set()

    assert watcher.result()
    assert store.stats().checkpoints == 200


def test_0_5_two_stores_on_one_file_keep_what_the_other_saved(path):
    with holdfast.open(path) as one, holdfast.open(path) as other:
        for n in range(5):
            one.thread("one").save({"n": n})
            other.thread("other").save({"n": n})
            one.thread("both").append(m=["one"])
            other.thread("both").append(m=["other"])

    with holdfast.open(path) as store:
        assert store.thread("one").step == store.thread("other").step == 5
        assert store.thread("both").load() == {"m": ["one", "other"] * 5}


def test_0_6_what_is_written_grows_with_the_number_of_turns(store):
    sizes = {}
    for turns in (50, 200):
        thread = store.thread(f"{turns} turns")
        before = store.stats().stored_bytes
        messages = []
        for n in range(turns):
            messages.append({"role": "user", "content": f"{n} {LONG}"})
            thread.save({"messages": messages})
        sizes[turns] = store.stats().stored_bytes - before

    assert sizes[200] <= 5 * sizes[50]


def test_0_6_the_file_is_not_much_larger_than_what_was_said(path):
    said = 0
    with holdfast.open(path, durability="normal") as store:
        for n in range(300):
            text = f"{n} {LONG}" * 3
            said += len(text)
            store.thread("chat").append(messages=[text])

    assert os.path.getsize(path) <= 2 * said


def test_0_8_the_parent_of_the_second_save_is_the_first(store):
    first = store.thread("chat").save({"n": 1})

    assert store.thread("chat").save({"n": 2}).parent == first.id


def test_0_9_pruning_by_age_keeps_the_head_of_a_living_thread(store, clock):
    store.thread("chat").save({"n": 1})
    head = store.thread("chat").save({"n": 2})
    clock.advance(1000 * DAY)

    store.prune(Retention(within=DAY))

    assert store.thread("chat").load() == {"n": 2}
    assert [c.id for c in store.thread("chat").history(all=True)] == [head.id]


def test_0_9_a_thread_is_listed_as_long_as_it_can_be_loaded(store, clock):
    store.thread("old").save({})
    clock.advance(1000 * DAY)
    store.thread("new").save({})

    store.prune(Retention(idle=DAY))

    assert [thread.id for thread in store.threads()] == ["new"]
    assert store.thread("old").head is None


def test_0_10_any_number_of_days_is_fine(store, clock):
    store.thread("chat").save({})
    clock.advance(10_000 * DAY)

    for age in (timedelta.max, timedelta(days=999_999_999), 10_001 * DAY):
        assert store.prune(Retention(within=age, idle=age)).checkpoints == 0


@pytest.mark.parametrize(
    "policy",
    [
        Retention(within=DAY, at_most=0.5),
        Retention(idle=DAY, at_most=0.5),
        Retention(idle=DAY, within=DAY, at_most=0.0),
    ],
)
def test_0_10_a_clock_that_jumps_ten_years_deletes_nothing(store, clock, policy):
    for name in "abc":
        for n in range(4):
            store.thread(name).save({"n": n})
    clock.advance(3650 * DAY)

    with raises(Conflict, "too_much"):
        store.prune(policy)

    assert store.stats().checkpoints == 12


def test_0_11_a_thousand_saves_in_a_moment_keep_their_order(memory):
    chat = memory.thread("chat")
    for n in range(1000):
        chat.save({"n": n})

    assert steps(chat.history(None)) == list(range(1000, 0, -1))
    assert chat.load() == {"n": 999}


def test_0_11_threads_are_listed_in_the_same_order_every_time(store):
    names = [f"{n * 7 % 20}" for n in range(20)]
    for name in names:
        store.thread(name).save({})

    for _ in range(3):
        assert [thread.id for thread in store.threads()] == names[::-1]


def test_0_12_any_checkpoint_is_read_restored_and_deleted(store):
    chat = store.thread("chat")
    saved = [chat.save({"n": n}) for n in range(3)]

    assert chat.load(saved[0].id) == {"n": 0}
    assert chat.rewind(saved[1].id) == saved[1]
    assert chat.delete(saved[0].id) == 1
    assert [c.id for c in chat.history()] == [saved[1].id]


def test_0_13_a_page_of_a_long_history_takes_no_more_memory(memory):
    def cost(thread):
        thread.history(10)
        tracemalloc.start()
        thread.history(10)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return peak

    short, long = memory.thread("short"), memory.thread("long")
    for n in range(20):
        short.append(m=[f"{n} {LONG}"])
    for n in range(2000):
        long.append(m=[f"{n} {LONG}"])

    assert cost(long) <= 2 * cost(short)


def test_0_15_nobody_else_can_read_the_files(tmp_path):
    before = os.umask(0)
    try:
        with holdfast.open(tmp_path / "store.db") as store:
            store.thread("chat").save({"secret": LONG})
            store.backup(str(tmp_path / "copy.db"))
            modes = {
                name: stat.S_IMODE(os.stat(tmp_path / name).st_mode)
                for name in os.listdir(tmp_path)
            }
    finally:
        os.umask(before)

    assert {"store.db", "store.db-wal", "copy.db"} <= modes.keys()
    assert set(modes.values()) == {0o600}
