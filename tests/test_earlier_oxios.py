"""What broke in an earlier system, oxios, each mistake by its number.

Mistakes of importers, agents, loops, encryption, damaged files and crashes are tested
elsewhere.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from earlier import DAY, steps, watched
from holdfast import (
    Conflict,
    HoldfastError,
    NotFound,
    Retention,
    Unstorable,
)
from holdfast._records import LONGEST_NAME
from holdfast.testing import FakeClock, raises


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
