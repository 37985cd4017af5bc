"""What broke in an earlier system, aether, each mistake by its number.

Mistakes of importers, agents, loops, encryption, damaged files and crashes are tested
elsewhere.
"""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from msgspec.structs import replace

import holdfast
from earlier import DAY, LONG, steps
from holdfast import (
    Retention,
)


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
