"""What broke in five earlier systems, row by row of INVENTORY.md part 3.

Rows about importers, agents, conversations, loops, encryption, damaged files and
crashes are tested elsewhere. One long file, since it follows that one page.
"""

import os
import stat
import threading
import tracemalloc
import warnings
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import holdfast
from holdfast import (
    Conflict,
    FormatMismatch,
    HoldfastError,
    NotFound,
    Retention,
    Store,
    Unstorable,
)
from holdfast._cache import Cache
from holdfast._records import LONGEST_NAME
from holdfast.testing import FakeClock, raises

LONG = "a value too long for the manifest " * 20
DAY = timedelta(days=1)


def steps(checkpoints):
    return [checkpoint.step for checkpoint in checkpoints]


class Watched:
    """A backend that notes what it is asked for, and may be interrupted before it."""

    blocking = True

    def __init__(self, backend):
        self.backend = backend
        self.asked = []
        self.before = {}

    def __getattr__(self, name):
        verb = getattr(self.backend, name)

        async def ask(*arguments, **options):
            self.asked.append(name)
            self.before.pop(name, lambda: None)()
            return await verb(*arguments, **options)

        return ask


def watched(store):
    """The same store with a `Watched` backend, and that backend."""
    backend = Watched(store._context.backend)
    context = replace(store._context, backend=backend, cache=Cache(1 << 20))
    return Store(context), backend


# --- S0 echo --------------------------------------------------------------------------


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


# --- S1 cortex ------------------------------------------------------------------------


def test_1_1_tags_and_metadata_that_were_given_are_found(store):
    chat = store.thread("chat")
    chat.save({"n": 1}, tags=["a", "b"], metadata={"custom": {"k": "v"}})
    chat.extend({"m": [1]}, tags=["b"], metadata={"cost": 2})

    assert steps(chat.history(tag="b")) == [2, 1]
    assert chat.find(tag="a").metadata == {"custom": {"k": "v"}}
    assert chat.get().metadata == {"cost": 2}


def test_1_2_compress_makes_the_store_smaller(tmp_path):
    sizes = {}
    for compress in (False, True):
        path = tmp_path / f"{compress}.db"
        with holdfast.open(path, compress=compress, durability="normal") as store:
            for n in range(100):
                store.thread("chat").append(m=[f"{n} {LONG}"])
            sizes[compress] = store.stats().stored_bytes

    assert sizes[True] < 0.5 * sizes[False]


@pytest.mark.parametrize(("durability", "level"), [("full", 2), ("normal", 1)])
def test_1_2_durability_is_what_sqlite_is_told(path, durability, level):
    with holdfast.open(path, durability=durability) as store:
        writer = store._context.backend._writer

        assert writer.execute("pragma synchronous").get == level


def test_1_2_a_busy_timeout_is_waited_for(path):
    with holdfast.open(path, busy_timeout=0.05) as store:
        store.thread("chat").save({})
        rival = apsw.Connection(path, vfs=store._context.backend._vfs)
        rival.execute("begin immediate")

        with raises(holdfast.Busy):
            store.thread("chat").save({})

        rival.execute("rollback")
        rival.close()
        assert store.thread("chat").save({}).step == 2


def test_1_2_options_that_would_do_nothing_do_not_exist(path):
    for option in ("ttl", "auto_checkpoint_interval", "max_checkpoints"):
        with raises(Unstorable):
            holdfast.open(path, **{option: 1})
    assert not os.path.exists(path)


def test_1_3_step_continues_after_reopening(path):
    for n in range(1, 4):
        with holdfast.open(path) as store:
            assert store.thread("chat").step == n - 1
            assert store.thread("chat").save({"n": n}).step == n


def test_1_4_concurrent_saves_make_one_line(store):
    chat = store.thread("chat")
    with ThreadPoolExecutor(8) as pool:
        saved = list(pool.map(lambda n: chat.save({"n": n}), range(100)))

    assert sorted(steps(saved)) == list(range(1, 101))
    history = chat.history(None)
    assert [c.parent for c in history] == [*(c.id for c in history[1:]), None]


def test_1_4_concurrent_saves_that_expect_the_same_head_have_one_winner(store):
    chat = store.thread("chat")
    first = chat.save({"n": 0})

    def save(n):
        try:
            return chat.save({"n": n}, expect=first)
        except Conflict as conflict:
            return conflict

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(save, range(1, 41)))

    [won] = [r for r in results if isinstance(r, holdfast.Checkpoint)]
    assert {r.found.id for r in results if isinstance(r, Conflict)} == {won.id}
    assert chat.head == won


def test_1_5_a_save_reads_no_state(memory):
    memory.thread("chat").save({"m": [LONG] * 50, "text": LONG})
    store, backend = watched(memory)
    chat = store.thread("chat")

    chat.append(m=[LONG])

    assert "segments" not in backend.asked


def test_1_5_a_second_save_asks_the_backend_once(memory):
    store, backend = watched(memory)
    chat = store.thread("chat")
    chat.save({"m": [LONG] * 50})
    backend.asked.clear()

    chat.save({"m": [LONG] * 51})
    chat.append(m=[LONG])

    assert backend.asked == ["commit", "commit"]


def test_1_5_a_failing_read_fails_the_save(memory):
    store, backend = watched(memory)

    def fail():
        raise HoldfastError("the disk is gone", code="io_error")

    backend.before["read"] = fail
    with raises(HoldfastError, "io_error"):
        store.thread("chat").save({"n": 1})

    assert memory.thread("chat").head is None


def test_1_6_a_prune_that_fails_is_reported_apart_from_the_save(path, clock):
    policy = Retention(last=1, at_most=0.0)
    with holdfast.open(path, retention=policy, prune_every=DAY, clock=clock) as store:
        store.thread("chat").save({"n": 1})
        clock.advance(2 * DAY)
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            saved = store.thread("chat").save({"n": 2})

        assert [w.category for w in warned] == [RuntimeWarning]
        assert store.thread("chat").head == saved


def test_1_7_after_a_prune_every_parent_is_there(store):
    chat = store.thread("chat")
    saved = [chat.save({"n": n}) for n in range(10)]
    chat.label("keep", saved[3])
    chat.fork("fork", at=saved[5]).save({"n": "fork"})

    store.prune(Retention(last=2))

    left = {c.id: c for c in (*chat.history(all=True), *store.thread("fork").history())}
    assert sorted({c.step for c in left.values()}) == [4, 6, 7, 9, 10]
    assert {c.parent for c in left.values()} <= {None, *left}


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "3"])
def test_1_7_a_policy_cannot_keep_nothing(wrong):
    with raises(Unstorable):
        Retention(last=wrong)
    with raises(Unstorable):
        Retention(threads_per_owner=wrong)


def test_1_8_labelled_and_tagged_checkpoints_survive(store):
    chat = store.thread("chat")
    chat.save({"n": 1}, label="before-risky-tool")
    chat.save({"n": 2}, tags=["pin"])
    for n in range(3, 8):
        chat.save({"n": n})

    store.prune(Retention(last=1))

    assert chat.load("label:before-risky-tool") == {"n": 1}
    assert chat.load("tag:pin") == {"n": 2}


def test_1_9_what_was_rewound_can_be_had_back(path):
    with holdfast.open(path) as store:
        chat = store.thread("chat")
        saved = [chat.save({"n": n}) for n in range(5)]
        chat.rewind(saved[1])
        assert chat.step == 2

    with holdfast.open(path) as store:
        chat = store.thread("chat")
        assert chat.undo() == saved[4]
        assert chat.redo() == saved[1]
        assert chat.save({"n": "other"}).step == 3


def test_1_10_a_fork_has_a_new_name_and_an_origin(store):
    chat = store.thread("chat")
    first = chat.save({"n": 1})
    chat.save({"n": 2})
    store.thread("other").save({"n": "theirs"})

    with raises(Conflict, "thread_exists"):
        chat.fork("other")

    fork = chat.fork("fork", at=first)
    assert fork.about.forked_from == ("chat", first.id)
    assert fork.save({"n": 3}).parent == first.id
    assert store.thread("other").load() == {"n": "theirs"}


def test_1_11_a_fork_touches_no_state(memory):
    memory.thread("chat").save({"m": [f"{n} {LONG}" for n in range(2000)]})
    before = memory.stats()
    store, backend = watched(memory)

    fork = store.thread("chat").fork("fork")

    assert "segments" not in backend.asked
    assert memory.stats().stored_bytes == before.stored_bytes
    assert fork.get().digest == memory.thread("chat").get().digest


def test_1_12_the_newest_of_a_label_is_found(store):
    chat = store.thread("chat")
    for n in range(3):
        chat.save({"n": n}, label="daily")

    assert chat.find(label="daily").step == 3
    assert chat.load("label:daily") == {"n": 2}


def test_1_13_a_checkpoint_of_another_thread_is_refused(store):
    ours = store.thread("ours").save({"n": 1})
    theirs = store.thread("theirs").save({"n": 2})
    thread = store.thread("ours")

    for refused in (
        lambda: thread.save({}, expect=theirs),
        lambda: thread.rewind(theirs),
        lambda: thread.fork("fork", at=theirs),
        lambda: thread.label("x", theirs),
        lambda: thread.history(before=theirs),
    ):
        with raises(NotFound, "foreign"):
            refused()
    assert thread.head == ours


def test_1_14_a_thread_is_there_everywhere_or_nowhere(store):
    chat = store.thread("chat")
    only = chat.save({"n": 1})
    with raises(Conflict, "last_checkpoint"):
        chat.delete(only)
    assert chat.load() == {"n": 1}

    chat.delete()

    assert (chat.head, chat.about, chat.step) == (None, None, 0)
    assert (len(store.threads()), len(chat.history())) == (0, 0)
    with raises(NotFound):
        chat.load()


def test_1_16_what_cannot_be_stored_is_refused(store):
    for value in (object(), print, lambda: None, type, open, iter([])):
        with raises(Unstorable):
            store.thread("chat").save({"value": value})

    assert store.thread("chat").head is None


# --- S2 smooth ------------------------------------------------------------------------


def test_2_3_ten_saves_in_one_second_resume_from_the_newest(store):
    chat = store.thread("chat")
    for n in range(10):
        chat.save({"iteration": n})

    assert chat.load() == {"iteration": 9}

    store.prune(Retention(last=3))

    assert [chat.load(c)["iteration"] for c in chat.history()] == [9, 8, 7]


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/b", "..\\x", "CON", "."])
def test_2_4_hostile_ids_stay_inside_the_store(tmp_path, name):
    folder = tmp_path / "inside"
    with holdfast.open(folder / "store.db") as store:
        store.thread(name).save({"n": 1}, id=name)
        assert store.thread(name).load(name) == {"n": 1}
        assert store.get(name).thread == name
        assert all(file.startswith("store.db") for file in os.listdir(folder))

    assert os.listdir(tmp_path) == ["inside"]


def test_2_6_nobody_overwrites_the_checkpoint_of_another(store):
    store.thread("one").save({"n": 1}, id="same")
    store.thread("two").save({"n": 2}, id="same")
    fork = store.thread("one").fork("fork")

    with raises(Conflict, "id_taken"):
        fork.save({"n": 3}, id="same")

    assert store.thread("one").load("same") == {"n": 1}
    assert store.thread("two").load("same") == {"n": 2}


def test_2_7_the_latest_of_many_costs_as_much_as_of_few(memory):
    few, many = memory.thread("few"), memory.thread("many")
    few.append(m=[LONG])
    for _ in range(500):
        many.save({"m": [LONG]})
    store, backend = watched(memory)
    asked = {}
    for name in ("few", "many"):
        backend.asked.clear()
        store.thread(name).load()
        asked[name] = list(backend.asked)

    assert asked["many"] == asked["few"]
    assert "scan" not in asked["many"]


def test_2_12_an_exception_in_one_call_leaves_the_store_usable(store):
    chat = store.thread("chat")

    class Broken(dict):
        def __iter__(self):
            raise RuntimeError("in the middle of a save")

    for broken in (Broken(a=1), {"a": Broken(a=1)}):
        with raises(Unstorable):
            chat.save(broken)

    assert chat.save({"n": 1}).step == 1
    assert chat.load() == {"n": 1}


def test_2_12_a_clock_that_fails_leaves_the_store_usable(path):
    failing = [False]

    def clock():
        if failing[0]:
            raise RuntimeError("no time")
        return 0

    with holdfast.open(path, clock=clock) as store:
        store.thread("chat").save({"n": 1})
        failing[0] = True
        for call in (
            lambda: store.thread("chat").save({"n": 2}),
            lambda: store.thread("chat").undo(),
            lambda: store.thread("chat").record("key", 1),
            lambda: store.prune(Retention(last=1)),
        ):
            with pytest.raises((RuntimeError, NotFound)):
                call()
        failing[0] = False

        assert store.thread("chat").save({"n": 2}).step == 2


def test_2_13_the_file_says_which_format_it_has(path):
    with holdfast.open(path) as store:
        store.thread("chat").save({})
        format_ = store.stats().format

    db = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    assert db.execute("pragma user_version").get == format_ >= 1
    assert db.execute("pragma application_id").get == int.from_bytes(b"HOLD", "big")
    db.close()


def test_2_13_a_newer_format_is_refused_and_left_alone(path):
    with holdfast.open(path) as store:
        store.thread("chat").save({"n": 1})
        backend = store._context.backend
        db = apsw.Connection(path, vfs=backend._vfs)
        db.execute(f"pragma user_version = {store.stats().format + 1}")
        db.close()

    for read_only in (False, True):
        with raises(FormatMismatch) as refused:
            holdfast.open(path, read_only=read_only)
        assert "upgrade" in str(refused.error)


def test_2_13_a_store_in_memory_has_the_same_tables():
    with holdfast.open(":memory:") as store:
        writer = store._context.backend._writer

        assert writer.execute("pragma user_version").get == store.stats().format


# --- S3 aether ------------------------------------------------------------------------


def test_3_1_a_thousand_keys_in_any_order_are_as_they_were(path):
    state = {f"key {n * 7919 % 1000}": {"n": n, "text": LONG[:n]} for n in range(1000)}
    with holdfast.open(path) as store:
        digest = store.thread("chat").save(state).digest

    with holdfast.open(path) as store:
        assert store.thread("chat").load() == state
        assert list(store.thread("chat").load()) == list(state)
        assert store.thread("chat").get().digest == digest


def test_3_2_a_digest_depends_on_everything_before_it(store):
    one, other = store.thread("one"), store.thread("other")
    one.save({"n": 1}, id="a")
    other.save({"n": 2}, id="a")

    ends = [thread.save({"n": 3}, id="b").digest for thread in (one, other)]

    assert ends[0] != ends[1]


def test_3_6_of_more_than_may_stay_the_newest_stay(store):
    chat = store.thread("chat")
    for n in range(11):
        saved = chat.save({"n": n}, kind="manual" if n < 5 else "automatic")
        store.prune(Retention(last=10))
        assert chat.head == saved

    assert steps(chat.history()) == list(range(11, 1, -1))


def test_3_8_a_hundred_concurrent_appends_are_a_hundred_messages(store):
    chat = store.thread("chat")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: chat.append(messages=[n]), range(100)))

    assert sorted(chat.load()["messages"]) == list(range(100))


def test_3_10_ids_with_dots_keep_them(store):
    for name in ("foo.json", "foo", "foo.json.json", ".json", "a.b.c"):
        store.thread(name).save({"name": name})

    for name in ("foo.json", "foo", "foo.json.json", ".json", "a.b.c"):
        assert store.thread(name).load() == {"name": name}
    assert store.stats().threads == 5


def test_3_12_not_a_number_does_not_brick_a_thread(store):
    chat = store.thread("chat")
    chat.save({"score": float("nan"), "scores": [float("inf"), float("-inf")] * 100})
    chat.append(scores=[float("nan")])

    loaded = chat.load()
    assert loaded["score"] != loaded["score"]
    assert loaded["scores"][:2] == [float("inf"), float("-inf")]
    assert loaded["scores"][200] != loaded["scores"][200]


def test_3_13_every_field_tells_the_truth(store, clock):
    chat = store.thread("chat")
    for n in range(1, 4):
        clock.advance(DAY)
        saved = chat.save({"n": n})
        about = chat.about
        assert (about.updated_at, about.head) == (clock.now, saved)
        assert about.changed == saved.seq
    assert about.created_at == clock.now - 2 * DAY // timedelta(microseconds=1)


def test_3_14_statistics_are_the_same_on_file_and_in_memory(path):
    facts = []
    for url in (path, ":memory:"):
        with holdfast.open(url) as store:
            for n in range(20):
                store.thread("chat").append(m=[f"{n} {LONG}"])
            store.thread("chat").fork("fork").save({"n": LONG})
            store.thread("chat").record("key", 1)
            store.thread("gone").save({})
            store.thread("gone").delete()
            facts.append(store.stats())

    assert facts[0].threads == 2
    assert replace(facts[0], file_bytes=0) == replace(facts[1], file_bytes=0)


def test_3_15_one_new_message_costs_one_message(store):
    chat = store.thread("chat")
    attachment = {"name": "scan", "content": LONG * 200}
    state = {"messages": [LONG] * 100, "files": [attachment], "config": {"a": LONG}}
    chat.save(state)
    before = store.stats().stored_bytes

    chat.save({**state, "messages": [*state["messages"], "one more"]})

    assert store.stats().stored_bytes - before < 2000


def test_3_16_opening_makes_everything_that_is_needed(tmp_path):
    path = tmp_path / "not" / "there" / "yet" / "store.db"

    with holdfast.open(path) as store:
        store.thread("chat").save({"n": 1})

    assert path.exists()


def test_3_17_an_unknown_kind_is_kept(store):
    store.thread("chat", kind="of another age").save({}, kind="never heard of")

    assert store.thread("chat").about.kind == "of another age"
    assert store.thread("chat").get().kind == "never heard of"


# --- S4 oxios -------------------------------------------------------------------------


def test_4_1_deleting_a_hostile_id_deletes_no_file(tmp_path):
    victim = tmp_path / "x.json"
    victim.write_text("dear to somebody")
    with holdfast.open(tmp_path / "a" / "b" / "store.db") as store:
        for name in ("../../x", "../../x.json", str(victim)):
            assert store.thread(name).delete() == 0
            assert store.delete(name) == 0
            store.thread(name).save({})
            assert store.thread(name).delete() == 1

    assert victim.read_text() == "dear to somebody"


def test_4_3_concurrent_updates_lose_nothing(store):
    chat = store.thread("chat")
    chat.save({"count": 0})

    def count(_):
        while True:
            head = chat.get()
            try:
                return chat.save({"count": chat.load(head)["count"] + 1}, expect=head)
            except Conflict:
                continue

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(count, range(40)))

    assert chat.load() == {"count": 40}


def test_4_4_a_thread_used_while_pruning_survives(memory, clock):
    memory.thread("chat").save({"n": 1})
    clock.advance(10 * DAY)
    store, backend = watched(memory)
    backend.before["prune"] = lambda: memory.thread("chat").save({"n": 2})

    pruned = store.prune(Retention(idle=DAY))

    assert pruned.threads == 0
    assert memory.thread("chat").load() == {"n": 2}


def test_4_4_a_label_set_while_pruning_is_kept(memory):
    chat = memory.thread("chat")
    saved = [chat.save({"n": n}) for n in range(5)]
    store, backend = watched(memory)
    backend.before["prune"] = lambda: chat.label("keep", saved[1])

    store.prune(Retention(last=1))

    assert steps(chat.history()) == [5, 2]


def test_4_4_a_fork_made_while_pruning_keeps_its_history(memory):
    chat = memory.thread("chat")
    saved = [chat.save({"n": n}) for n in range(5)]
    store, backend = watched(memory)
    backend.before["prune"] = lambda: chat.fork("fork", at=saved[1])

    store.prune(Retention(last=1))

    assert memory.thread("fork").load() == {"n": 1}


def test_4_4_a_rewind_while_pruning_keeps_its_target(memory):
    chat = memory.thread("chat")
    saved = [chat.save({"n": n}) for n in range(5)]
    store, backend = watched(memory)
    backend.before["prune"] = lambda: chat.rewind(saved[1])

    store.prune(Retention(last=1))

    assert chat.load() == {"n": 1}


def test_4_4_a_save_while_deleting_is_not_lost_silently(memory):
    chat = memory.thread("chat")
    chat.save({"n": 1})
    store, backend = watched(memory)
    backend.before["prune"] = lambda: chat.save({"n": 2})

    assert store.thread("chat").delete() == 1

    with raises(Conflict, "thread_deleted"):
        chat.save({"n": 3})


def test_4_4_a_checkpoint_pruned_while_it_is_loaded_is_not_called_damaged(memory):
    chat = memory.thread("chat")
    first = chat.save({"text": "a" * 600})
    chat.save({"text": "b" * 600})
    store, backend = watched(memory)
    backend.before["segments"] = lambda: memory.prune(Retention(last=1))

    with raises(NotFound):
        store.thread("chat").load(first)


def test_4_4_a_head_replaced_while_it_is_loaded_gives_a_whole_state(memory):
    chat = memory.thread("chat")
    chat.save({"text": "a" * 600})
    store, backend = watched(memory)

    def replace_head():
        chat.save({"text": "b" * 600})
        memory.prune(Retention(last=1))

    backend.before["segments"] = replace_head

    assert store.thread("chat").load() == {"text": "b" * 600}


def test_4_4_a_head_replaced_while_it_is_saved_on_is_built_on(memory):
    chat = memory.thread("chat")
    chat.save({"text": "a" * 600})
    store, backend = watched(memory)

    def replace_head():
        chat.save({"text": "b" * 600})
        memory.prune(Retention(last=1))

    backend.before["segments"] = replace_head

    assert store.thread("chat").save({"text": "c" * 600}).step == 3
    assert chat.load("@~1") == {"text": "b" * 600}


def test_4_5_a_save_costs_the_same_however_many_threads_there_are(memory):
    store, backend = watched(memory)
    costs = []
    for count in (1, 300):
        for n in range(count):
            memory.thread(f"{count} {n}").save({})
        backend.asked.clear()
        store.thread(f"new {count}").save({"n": 1})
        costs.append(list(backend.asked))

    assert costs[0] == costs[1]


def test_4_8_every_use_of_a_thread_counts_as_use(store, clock):
    chat = store.thread("chat")
    first = chat.save({"n": 1})
    for use in (
        lambda: chat.save({"n": 2}),
        lambda: chat.append(m=[1]),
        lambda: chat.record("key", clock.now),
        lambda: chat.label("x"),
        lambda: chat.rewind(first),
        chat.undo,
        lambda: chat.describe(owner="me"),
    ):
        clock.advance(10 * DAY)
        use()
        assert chat.about.updated_at == clock.now
        assert store.prune(Retention(idle=5 * DAY)).threads == 0


@pytest.mark.parametrize("age", [timedelta.max, timedelta(days=999_999_999)])
def test_4_9_a_huge_age_deletes_nothing(store, clock, age):
    store.thread("chat").save({})
    clock.advance(100 * 365 * DAY)

    assert store.prune(Retention(within=age, idle=age, last=1)).threads == 0
    assert store.thread("chat").step == 1


@pytest.mark.parametrize("age", [-DAY, timedelta.min, 168, "168h", 1.5])
def test_4_9_an_age_that_makes_no_sense_is_refused(age):
    with raises(Unstorable):
        Retention(within=age)
    with raises(Unstorable):
        Retention(idle=age)


def test_4_13_one_owner_does_not_evict_the_threads_of_another(store):
    store.thread("theirs", owner="quiet").save({})
    for n in range(10):
        store.thread(f"{n}", owner="busy").save({})

    pruned = store.prune(Retention(threads_per_owner=3))

    assert pruned.threads == 7
    assert store.thread("theirs").step == 1


@given(name=st.text(min_size=1).filter(lambda text: "\0" not in text))
def test_4_14_any_name_is_kept_or_refused(name):
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        size = None
    with holdfast.open(":memory:", clock=FakeClock()) as store:
        if size is None or size > LONGEST_NAME:
            with raises(Unstorable):
                store.thread(name)
            return
        thread = store.thread(name, owner=name, kind=name)
        thread.save({"name": name}, label=name, tags=[name], journal={name: 1})
        [listed] = store.threads(prefix=name, owner=name, kind=name)

        assert listed.id == name
        assert thread.load(f"label:{name}") == thread.load(f"tag:{name}")
        assert thread.journal(checkpoint=thread.head) == {name: 1}
        assert thread.delete() == 1


def test_4_14_names_that_look_alike_are_different(store):
    names = ["a", "A", "a ", " a", "\u00e9", "e\u0301", "a\u200b", "\u0430"]
    for n, name in enumerate(names):
        store.thread(name).save({"n": n})

    assert [store.thread(name).load()["n"] for name in names] == list(range(len(names)))


def test_4_15_the_counts_are_of_what_went(store):
    chat = store.thread("chat")
    for n in range(5):
        chat.save({"n": n})
    store.thread("other").save({})

    assert store.prune(Retention(last=2)).checkpoints == 3
    assert store.prune(Retention(last=2)).checkpoints == 0
    assert store.delete("chat", "chat", "nobody") == 1
    assert store.delete("chat") == 0


def test_4_16_a_place_that_cannot_be_used_fails_when_opened(tmp_path):
    (tmp_path / "file").write_text("")

    for place in (tmp_path / "file" / "store.db", tmp_path):
        with raises(HoldfastError, "cannot_open"):
            holdfast.open(place)
    with raises(NotFound):
        holdfast.open(tmp_path / "nothing.db", read_only=True)
    assert sorted(os.listdir(tmp_path)) == ["file"]


@pytest.mark.skipif(
    getattr(os, "getuid", int)() == 0, reason="root may write everywhere"
)
def test_4_16_a_folder_that_is_read_only_fails_when_opened(tmp_path):
    tmp_path.chmod(0o500)

    with raises(HoldfastError):
        holdfast.open(tmp_path / "store.db")
