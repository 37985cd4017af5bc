"""What broke in an earlier system, oxios, each mistake by its number.

Mistakes of importers, loops, encryption, damaged files and crashes are tested
elsewhere.
"""

import os
import warnings
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast import (
    Conflict,
    Conversation,
    Corrupt,
    HoldfastError,
    Message,
    NotFound,
    Retention,
    Unstorable,
)
from holdfast.operations.values import LONGEST_NAME
from holdfast.testing import FakeClock, raises
from support.earlier_systems import DAY, damage, steps, watched
from support.samples import LONG


def test_4_1_deleting_a_hostile_id_deletes_no_file(tmp_path):
    victim = tmp_path / "x.json"
    victim.write_text("dear to somebody")
    with holdfast.open(tmp_path / "a" / "b" / "store.db", make_folders=True) as store:
        for name in ("../../x", "../../x.json", str(victim)):
            assert store.thread(name).delete() == 0
            assert store.delete(name) == 0
            store.thread(name).save({})
            assert store.thread(name).delete() == 1

    assert victim.read_text() == "dear to somebody"


def test_4_1_deleting_a_hostile_session_or_document_deletes_no_file(tmp_path):
    victim = tmp_path / "x.json"
    victim.write_text("dear to somebody")
    with holdfast.open(tmp_path / "a" / "b" / "store.db", make_folders=True) as store:
        for name in ("../../x", "../../x.json", str(victim)):
            assert store.conversations.delete(name) == 0
            assert store.documents.delete(name) == 0
            store.conversations.get_or_create("ann", name)
            store.documents.save(name, "x")
            assert store.conversations.delete(name, owner="ann") == 1
            assert store.documents.delete(name) == 1

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


def test_4_4_a_session_used_while_sessions_are_pruned_survives(memory, clock):
    memory.conversations.create("used", owner="ann")
    memory.conversations.create("idle", owner="ann")
    clock.advance(10 * DAY)
    store, backend = watched(memory)
    use = lambda: memory.conversations.add("used", Message.user("x"))  # noqa: E731
    backend.before["prune"] = use

    pruned = store.conversations.prune(idle=DAY)

    assert pruned.threads == 1
    assert [talk.id for talk in store.conversations.list()] == ["used"]
    assert store.conversations.load("used").message_count == 1


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
    chat.append(m=["a" * 600])
    store, backend = watched(memory)
    # Now the store knows the head, but not all of its bytes.
    store.thread("chat").append(m=["b" * 600])

    def replace_head():
        chat.save({"m": ["c" * 600]})
        memory.prune(Retention(last=1))

    backend.before["segments"] = replace_head

    assert store.thread("chat").load() == {"m": ["c" * 600]}
    assert "segments" in backend.asked


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


def test_4_5_adding_to_a_session_costs_the_same_however_many_there_are(memory):
    costs = []
    for count in (1, 300):
        for n in range(count):
            memory.conversations.create(f"{count} {n}", owner="ann")
        store, backend = watched(memory)
        store.conversations.add(f"{count} 0", Message.user("x"))
        costs.append(list(backend.asked))

    assert costs[0] == costs[1]


def test_4_5_sessions_are_pruned_only_so_often(clock):
    policy = Retention(kinds=("conversation",), threads_per_owner=1)
    options = {"retention": policy, "prune_every": DAY, "clock": clock}
    with holdfast.open(":memory:", **options) as memory:
        memory.conversations.create("first", owner="ann")
        store, backend = watched(memory)
        for n in range(3):
            store.conversations.create(f"{n}", owner="ann")
        assert "prune" not in backend.asked

        clock.advance(DAY)
        store.conversations.add("0", Message.user("x"))

        # One transaction removes the sessions, and one forgets old tombstones.
        assert backend.asked.count("prune") == 2
        assert [talk.id for talk in store.conversations.list()] == ["0"]


def test_4_5_a_prune_that_failed_is_due_again_at_once(clock):
    policy = Retention(kinds=("conversation",), idle=DAY, at_most=0.1)
    options = {"retention": policy, "prune_every": 10 * DAY, "clock": clock}
    with holdfast.open(":memory:", **options) as store:
        store.conversations.create("idle")
        clock.advance(20 * DAY)
        for n in range(2):
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                store.conversations.create(f"{n}")
            assert [w.category for w in warned] == [RuntimeWarning]

        assert len(store.conversations.list()) == 3


def test_4_6_a_session_that_cannot_be_read_is_reported_and_can_be_had_back(memory):
    memory.conversations.get_or_create("ann", "s")
    memory.conversations.add("s", Message.user("fine " + LONG))
    memory.conversations.add("s", Message.user("spoilt " + LONG))
    damage(memory, "conversation:s")
    store, _ = watched(memory)

    with raises(Corrupt):
        store.conversations.get_or_create("ann", "s")
    assert [talk.id for talk in store.conversations.list()] == ["s"]
    assert [problem.thread for problem in store.verify().problems] == ["conversation:s"]

    store.conversations.thread("s").rewind("@^")
    assert store.conversations.get_or_create("ann", "s").message_count == 1
    store.conversations.add("s", Message.user("and on"))
    assert store.conversations.load("s").message_count == 2


def test_4_6_a_session_that_cannot_be_read_is_pruned_like_others(memory, clock):
    memory.conversations.create("s", owner="ann", messages=[Message.user(LONG)])
    damage(memory, "conversation:s")
    clock.advance(10 * DAY)
    store, _ = watched(memory)

    assert store.conversations.prune(idle=DAY).threads == 1
    assert store.conversations.get_or_create("ann", "s").messages == []
    assert store.verify()


def test_4_7_the_session_of_another_user_is_not_found(store):
    store.conversations.get_or_create("ann", "s", title="secret")

    with raises(NotFound):
        store.conversations.get_or_create("bob", "s")
    with raises(Unstorable):
        store.conversations.get_or_create(None, "s")

    assert store.conversations.get_or_create("ann", "s").title == "secret"


def test_4_8_every_use_of_a_session_counts_as_use(store, clock):
    talks = store.conversations
    talks.create("s", owner="ann")
    record = talks.load("s")
    for use in (
        lambda: talks.add("s", Message.user("x")),
        lambda: talks.update("s", title="t"),
        lambda: talks.archive("s"),
        lambda: talks.save(talks.load("s")),
        lambda: talks.save(Conversation(id="s", owner="ann")),
    ):
        clock.advance(10 * DAY)
        use()
        assert talks.load("s").updated_at == clock.now
        assert talks.prune(idle=5 * DAY).threads == 0
    assert record.created_at == talks.load("s").created_at


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


def test_4_10_text_and_json_of_a_name_are_one_document_or_two_names(store):
    store.documents.save("x", "text")
    store.documents.save("x", {"json": True})
    store.documents.save("x.md", "text")
    store.documents.save("x.json", {"json": True})

    assert [d.name for d in store.documents.list()] == ["x.json", "x.md", "x"]
    assert store.documents.load("x").content == {"json": True}
    assert store.documents.delete("x") == 1
    assert store.stats().documents == 2


def test_4_13_one_user_does_not_evict_the_sessions_of_another(store):
    store.conversations.get_or_create("quiet", "theirs")
    for n in range(10):
        store.conversations.get_or_create("busy", f"{n}")

    assert store.conversations.prune(per_owner=3).threads == 7

    left = [talk.id for talk in store.conversations.list()]
    assert left == ["9", "8", "7", "theirs"]


def test_4_13_one_owner_does_not_evict_the_threads_of_another(store):
    store.thread("theirs", owner="quiet").save({})
    for n in range(10):
        store.thread(f"{n}", owner="busy").save({})

    pruned = store.prune(Retention(threads_per_owner=3))

    assert pruned.threads == 7
    assert store.thread("theirs").step == 1


@given(name=st.text(min_size=1).filter(lambda text: not {"\0", "\x1f"} & {*text}))
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


def test_4_15_the_counts_of_sessions_are_of_what_went(store, clock):
    for n in range(5):
        store.conversations.create(f"{n}", owner="ann")
    clock.advance(10 * DAY)
    store.conversations.add("0", Message.user("x"))

    assert store.conversations.prune(idle=DAY, dry_run=True).threads == 4
    assert store.conversations.prune(idle=DAY).threads == 4
    assert store.conversations.prune(idle=DAY).threads == 0
    assert store.conversations.delete("0", "0", "1", "nobody") == 1
    assert store.conversations.delete("0") == 0


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
