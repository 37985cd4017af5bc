"""What broke in an earlier system, cortex, each mistake by its number.

Mistakes of importers, loops, encryption, damaged files and crashes are tested
elsewhere.
"""

import dataclasses
import os
import warnings
from concurrent.futures import ThreadPoolExecutor

import apsw
import pydantic
import pytest

import holdfast
from holdfast import (
    Conflict,
    FormatMismatch,
    HoldfastError,
    NotFound,
    Retention,
    Unstorable,
)
from holdfast.testing import raises
from support.earlier_systems import DAY, steps, watched
from support.samples import LONG
from support.stores import backend_of


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
        writer = backend_of(store).database.writer

        assert writer.execute("pragma synchronous").get == level


def test_1_2_a_busy_timeout_is_waited_for(path):
    with holdfast.open(path, busy_timeout=0.05) as store:
        store.thread("chat").save({})
        rival = apsw.Connection(path, vfs=backend_of(store).database.vfs)
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


class PlanOfToday(pydantic.BaseModel):
    """What version 2 of a program wants; version 1 had one step, as text."""

    steps: list[str]
    budget: int = 100

    @pydantic.model_validator(mode="before")
    @classmethod
    def upcast(cls, state):
        return {"steps": [state["step"]]} if "step" in state else state


def test_1_15_an_old_state_is_loaded_through_an_upcaster(store):
    plan = store.thread("plan")
    plan.save({"step": "read"})
    plan.save({"steps": ["read", "write"], "budget": 5})

    old, new = plan.load("@^", type=PlanOfToday), plan.load(type=PlanOfToday)

    assert old == PlanOfToday(steps=["read"])
    assert new == PlanOfToday(steps=["read", "write"], budget=5)
    assert plan.load("@^") == {"step": "read"}


def test_1_15_a_state_that_no_longer_fits_is_refused_and_can_still_be_read(store):
    @dataclasses.dataclass
    class Plan:
        steps: list[str]

    plan = store.thread("plan")
    plan.save({"step": "read"})

    with raises(FormatMismatch):
        plan.load(type=Plan)
    assert Plan([plan.load()["step"]]) == Plan(["read"])


@pytest.mark.parametrize("kind", ["agent", "conversation", "document"])
def test_1_15_records_of_an_older_and_a_newer_writer_are_loaded(kind, store):
    typed = {
        "agent": store.agents,
        "conversation": store.conversations,
        "document": store.documents,
    }[kind]
    typed.thread("x").save({"metadata": {"k": 1}})
    assert typed.load("x").metadata == {"k": 1}

    typed.thread("x").save({"metadata": {"k": 2}, "of_tomorrow": [1]})

    assert typed.load("x").metadata == {"k": 2}
    assert typed.load("x", "@^").metadata == {"k": 1}
    assert len(typed.list()) == 1


def test_1_16_what_cannot_be_stored_is_refused(store):
    for value in (object(), print, lambda: None, type, open, iter([])):
        with raises(Unstorable):
            store.thread("chat").save({"value": value})

    assert store.thread("chat").head is None
