"""Mistakes of other savers that this one must not make."""

import itertools
import os
import subprocess
import sys
import threading

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6

import holdfast
from adapters.langgraph import graphs
from adapters.langgraph.graphs import put, refused, thread
from holdfast.adapters.langgraph import HoldfastSaver

# --- two runs on one thread -----------------------------------------------------------


def interrupting(saver, name):
    """A graph whose node lets another run of the same thread come first, once."""
    others = iter([True])
    builder = graphs.chat()

    def model(state):
        if next(others, False):
            other = builder.compile(checkpointer=saver)
            other.invoke(graphs.say("I was faster"), thread(name), durability="sync")
        return graphs.echo(state)

    builder.nodes["model"].runnable.func = model
    return builder.compile(checkpointer=saver)


def test_of_two_runs_on_one_thread_the_second_is_told_and_the_first_is_kept(saver):
    graphs.chat().compile(checkpointer=saver).invoke(graphs.say("hello"), thread("t"))
    graph = interrupting(saver, "t")

    with refused("head_moved") as caught:
        graph.invoke(graphs.say("I was first"), thread("t"), durability="sync")

    assert "another run has saved to thread 't'" in str(caught.value)
    told = graphs.texts(graph.get_state(thread("t")).values)
    assert told[-2:] == ["I was faster", "You said: I was faster"]
    everything = [
        m for s in graph.get_state_history(thread("t")) for m in s.values["messages"]
    ]
    assert "I was first" in [message.content for message in everything]


def test_two_runs_that_both_begin_a_thread_are_told_apart(quick):
    graph = graphs.chat().compile(checkpointer=quick)
    first = quick.get_tuple(thread("t"))
    graph.invoke(graphs.say("I was faster"), thread("t"))
    run = {**thread("t", checkpoint_ns=""), "recursion_limit": 25, "metadata": {}}

    with refused("head_moved"):
        quick.put(run, empty_checkpoint(), {"source": "input", "step": -1}, {})

    assert first is None
    assert len(graph.get_state(thread("t")).values["messages"]) == 2


def test_of_many_runs_at_the_same_moment_every_one_is_saved_or_told(saver):
    graph = graphs.chat().compile(checkpointer=saver)
    graph.invoke(graphs.say("hello"), thread("t"))
    saved, told = [], []
    barrier = threading.Barrier(4)

    def run(n):
        barrier.wait()
        try:
            graph.invoke(graphs.say(f"run {n}"), thread("t"), durability="sync")
            saved.append(f"run {n}")
        except holdfast.Conflict:
            told.append(f"run {n}")

    workers = [threading.Thread(target=run, args=(n,)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert sorted(saved + told) == [f"run {n}" for n in range(4)]
    assert saved
    assert {*saved} <= {*graphs.texts(graph.get_state(thread("t")).values)}


def test_a_put_that_is_repeated_is_made_once(saver):
    config = put(saver, thread("t"), {"x": 1})
    stored = saver.get_tuple(config)

    again = put(saver, thread("t"), {"x": 1}, checkpoint=stored.checkpoint)

    assert again == config
    assert len(list(saver.list(thread("t")))) == 1


def test_an_id_is_not_used_for_other_content(saver):
    stored = saver.get_tuple(put(saver, thread("t"), {"x": 1}))
    other = {**stored.checkpoint, "channel_values": {"x": 2}}

    with refused("id_taken"):
        put(saver, thread("t"), checkpoint=other)

    assert saver.get_tuple(thread("t")).checkpoint["channel_values"] == {"x": 1}


# --- deleted threads ------------------------------------------------------------------


def test_a_late_put_does_not_bring_a_deleted_thread_back(saver):
    config = put(saver, thread("t"), {"x": 1})
    saver.delete_thread("t")

    with refused("thread_deleted"):
        put(saver, config, {"x": 2})
    with refused("thread_deleted"):
        saver.put_writes(config, [("x", 3)], "task")

    assert saver.get_tuple(thread("t")) is None
    assert list(saver.list(None)) == []


def test_a_late_subgraph_does_not_bring_a_deleted_thread_back(saver):
    put(saver, thread("t"), {"x": 1})
    late = empty_checkpoint()
    saver.delete_thread("t")

    with refused("thread_deleted"):
        put(saver, thread("t", checkpoint_ns="sub:1"), checkpoint=late)
    with refused("thread_deleted"):
        config = thread("t", checkpoint_ns="sub:2", checkpoint_id=late["id"])
        saver.put_writes(config, [("x", 3)], "task")

    assert list(saver.list(thread("t"))) == []


def test_a_deleted_thread_can_begin_anew(saver):
    graph = graphs.nested().compile(checkpointer=saver)
    graph.invoke({"log": []}, thread("t"))
    saver.delete_thread("t")

    graph.invoke({"log": []}, thread("t"))

    assert graph.get_state(thread("t")).values == {"log": ["first"]}


def test_the_writes_of_a_new_run_may_come_before_its_first_checkpoint(saver):
    put(saver, thread("t"), {"x": 1})
    saver.delete_thread("t")
    fresh = empty_checkpoint()

    config = thread("t", checkpoint_ns="", checkpoint_id=fresh["id"])
    saver.put_writes(config, [("x", 2)], "task")
    put(saver, thread("t"), checkpoint=fresh)

    assert saver.get_tuple(thread("t")).pending_writes == [("task", "x", 2)]


# --- clocks ---------------------------------------------------------------------------


def test_the_newest_is_what_was_saved_last_whatever_the_ids_say(saver):
    ids = [str(uuid6(clock_seq=n)) for n in range(3)]
    config = thread("t")
    for id_ in (ids[1], ids[2], ids[0]):
        config = put(saver, config, {"x": id_}, checkpoint={"id": id_})

    listed = [item.checkpoint["id"] for item in saver.list(thread("t"))]
    before = [item.checkpoint["id"] for item in saver.list(thread("t"), before=config)]

    assert saver.get_tuple(thread("t")).checkpoint["channel_values"] == {"x": ids[0]}
    assert listed == [ids[0], ids[2], ids[1]]
    assert before == [ids[2], ids[1]]


def test_a_run_whose_clock_is_behind_loses_nothing(saver, monkeypatch):
    graph = graphs.chat().compile(checkpointer=saver)
    graph.invoke(graphs.say("hello"), thread("t"))
    behind = itertools.count(1)

    def slow(node=None, clock_seq=None):
        return f"1ef00000-0000-6000-8000-{next(behind):012}"

    monkeypatch.setattr("langgraph.pregel._checkpoint.uuid6", slow)
    graph.invoke(graphs.say("behind"), thread("t"))
    monkeypatch.undo()
    state = graph.invoke(graphs.say("again"), thread("t"))

    assert graphs.texts(state)[::2] == ["hello", "behind", "again"]


# --- text and types -------------------------------------------------------------------

ODD = ["nul \0 in text", "lone \ud800 surrogate", "\udfff", "emoji \U0001f600", ""]


@pytest.mark.parametrize("text", ODD)
def test_any_text_comes_back_as_it_was(saver, text):
    config = put(saver, thread("t"), {"x": text, "y": [{text: text}]}, note="plain")
    saver.put_writes(config, [("x", text)], "task", text)

    found = saver.get_tuple(thread("t"))

    assert found.checkpoint["channel_values"] == {"x": text, "y": [{text: text}]}
    assert found.pending_writes == [("task", "x", text)]


@pytest.mark.parametrize(
    "name", ["#", "a#b", "%", "%41", "a/b", "\0", "\ud800", "x" * 600]
)
def test_any_text_names_a_thread(saver, name):
    put(saver, thread(name), {"x": name})
    put(saver, thread(name, checkpoint_ns="sub:1"), {"x": "below"})
    put(saver, thread("b"), {"x": "other"})

    found = saver.get_tuple(thread(name))
    saver.delete_thread(name)

    assert found.config["configurable"]["thread_id"] == name
    assert found.checkpoint["channel_values"] == {"x": name}
    assert [item.config["configurable"]["thread_id"] for item in saver.list(None)] == [
        "b"
    ]


def test_a_number_names_a_thread_as_its_text_does(saver):
    put(saver, thread(7), {"x": 1})

    assert saver.get_tuple(thread("7")) == saver.get_tuple(thread(7))
    saver.delete_thread(7)
    assert saver.get_tuple(thread("7")) is None


def test_tuples_come_back_as_tuples(saver):
    value = {"pair": (1, 2), "nested": [((3,), [4])], ("key", 5): {6, 7}}

    put(saver, thread("t"), {"x": value})

    found = saver.get_tuple(thread("t")).checkpoint["channel_values"]["x"]
    assert found == value
    assert type(found["pair"]) is type(found["nested"][0]) is tuple


# --- tampering ------------------------------------------------------------------------


def test_a_tampered_row_makes_nothing_run(tmp_path):
    path = str(tmp_path / "agents.db")
    mark = tmp_path / "executed"
    evil = {"__type__": "os.system", "value": f"touch {mark}"}
    with holdfast.open(path) as store:
        put(HoldfastSaver(store), thread("t"), {"x": 1})
        state = store.thread("t").load()
        store.thread("t").save({**state, "x": [evil]})

    with HoldfastSaver(path) as saver, pytest.raises(holdfast.FormatMismatch) as caught:
        saver.get_tuple(thread("t"))

    assert caught.value.code == "type_not_allowed"
    assert "'os.system'" in str(caught.value)
    assert "allow=[...]" in str(caught.value)
    assert not mark.exists()


# --- listing --------------------------------------------------------------------------

KEYS = ["plain", "access-level", "123abc", "x') or '1'='1", "'; drop table x", "a.b"]


@pytest.mark.parametrize("key", KEYS)
def test_metadata_are_filtered_by_any_key(saver, key):
    put(saver, thread("a"), **{key: "yes"})
    put(saver, thread("b"), **{key: "no"})

    found = list(saver.list(None, filter={key: "yes"}))

    assert [item.metadata[key] for item in found] == ["yes"]


def test_metadata_are_filtered_by_all_keys_and_by_paths(saver):
    put(saver, thread("a"), user={"name": "ann", "age": 30}, plan="pro")
    put(saver, thread("b"), user={"name": "ann", "age": 31}, plan="free")

    found = list(saver.list(None, filter={"user.name": "ann", "plan": "pro"}))
    none = list(saver.list(None, filter={"user.name": "ann", "plan": "none"}))

    assert [item.config["configurable"]["thread_id"] for item in found] == ["a"]
    assert none == []


def test_the_loop_over_a_listing_may_call_the_saver(saver):
    config = thread("t")
    for n in range(120):
        config = put(saver, config, {"n": n})

    seen = []
    for item in saver.list(thread("t")):
        found = saver.get_tuple(item.config)
        saver.put_writes(item.config, [("n", "seen")], "task")
        seen.append(found.checkpoint["channel_values"]["n"])

    assert seen == [*reversed(range(120))]
    assert saver.get_tuple(thread("t")).pending_writes == [("task", "n", "seen")]


def test_a_listing_can_be_left_early(saver):
    for name in ("a", "b", "c"):
        put(saver, thread(name))

    first = next(saver.list(None))

    assert first.config["configurable"]["thread_id"] == "c"
    assert len(list(saver.list(None, limit=2))) == 2
    assert list(saver.list(None, limit=0)) == []


def test_other_threads_of_the_store_are_left_alone(saver):
    context = saver._runner.context
    store = holdfast.Store(context)
    store.thread("mine").save({"x": 1})

    with pytest.raises(holdfast.FormatMismatch, match="use another thread_id"):
        saver.get_tuple(thread("mine"))
    with pytest.raises(holdfast.FormatMismatch):
        put(saver, thread("mine"))
    with pytest.raises(holdfast.FormatMismatch):
        saver.delete_thread("mine")

    assert list(saver.list(None)) == []
    assert store.thread("mine").load() == {"x": 1}


def test_a_missing_extra_is_named(tmp_path):
    folder = tmp_path / "langgraph"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise ImportError('not here')")

    ran = subprocess.run(
        [sys.executable, "-c", "import holdfast.adapters.langgraph"],
        check=False,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )

    assert ran.returncode != 0
    assert "pip install 'holdfast[langgraph]'" in ran.stderr
