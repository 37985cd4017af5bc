"""Pruning, deleting and copying: what is kept still works."""

import pytest
from langgraph.types import Command

import holdfast
from adapters.langgraph import graphs
from adapters.langgraph.graphs import put, refused, thread


def ids(saver, config):
    return [item.checkpoint["id"] for item in saver.list(config)]


def chain(saver, name, length, **about):
    config = thread(name)
    for n in range(length):
        config = put(saver, config, {"n": n, "log": ["x" * 300] * n}, **about)
    return config


# --- pruning --------------------------------------------------------------------------


def test_pruning_keeps_the_newest_with_its_writes_and_frees_the_rest(saver):
    config = chain(saver, "t", 5)
    saver.put_writes(config, [("n", "pending")], "task")
    newest = saver.get_tuple(thread("t"))

    saver.prune(["t"])

    [left] = saver.list(thread("t"))
    assert left.checkpoint == newest.checkpoint
    assert left.pending_writes == [("task", "n", "pending")]
    assert left.parent_config is None


def test_a_pruned_thread_goes_on(saver):
    graph = graphs.chat().compile(checkpointer=saver)
    graph.invoke(graphs.say("hello"), thread("t"))

    saver.prune(["t"])
    state = graph.invoke(graphs.say("again"), thread("t"))

    assert len(state["messages"]) == 4
    assert len(ids(saver, thread("t"))) == 4


def test_a_pruned_thread_that_waits_for_a_person_goes_on(saver):
    graph = graphs.nested().compile(checkpointer=saver)
    graph.invoke({"log": []}, thread("t"))

    saver.prune(["t"])
    state = graph.invoke(Command(resume="yes"), thread("t"))

    assert state["log"] == ["first", "first", "before", "yes", "after", "last"]


def test_the_calls_of_subgraphs_go_with_the_checkpoints_they_were_made_from(saver):
    graph = graphs.nested().compile(checkpointer=saver)
    graph.invoke({"log": []}, thread("t"))
    graph.invoke(Command(resume="yes"), thread("t"))

    saver.prune(["t"])

    [left] = saver.list(thread("t"))
    assert left.config["configurable"]["checkpoint_ns"] == ""


def test_what_is_labelled_or_forked_is_not_pruned(quick, quick_store):
    chain(quick, "t", 5)
    quick_store.thread("t").label("before-refund", "@~2")
    quick_store.thread("t").fork("fork", at="@~3")

    quick.prune(["t"])

    left = [item.checkpoint["channel_values"]["n"] for item in quick.list(thread("t"))]
    assert left == [4, 2, 1]
    assert quick.get_tuple(thread("fork")).checkpoint["channel_values"]["n"] == 1
    assert quick_store.verify().ok


def test_pruning_everything_is_deleting(saver):
    chain(saver, "t", 2)
    chain(saver, "other", 2)

    saver.prune(["t", "unknown"], strategy="delete")

    assert {item.config["configurable"]["thread_id"] for item in saver.list(None)} == {
        "other"
    }


def test_an_unknown_strategy_is_refused(quick):
    with pytest.raises(holdfast.Unstorable, match="keep_latest"):
        quick.prune(["t"], strategy="keep_some")


# --- runs -----------------------------------------------------------------------------


def test_without_the_last_run_the_one_before_is_the_newest(saver):
    config = chain(saver, "t", 2, run_id="first")
    last = put(saver, config, {"n": "last"}, run_id="second")

    saver.delete_for_runs(["second"])

    assert saver.get_tuple(last) is None
    assert saver.get_tuple(thread("t")).checkpoint["channel_values"]["n"] == 1


def test_without_an_earlier_run_the_later_one_stands_alone(saver):
    config = chain(saver, "t", 2, run_id="first")
    put(saver, config, {"n": "last"}, run_id="second")

    saver.delete_for_runs(["first"])

    [left] = saver.list(thread("t"))
    assert left.checkpoint["channel_values"] == {"n": "last"}
    assert left.parent_config is None


# --- copies ---------------------------------------------------------------------------


def contents(item):
    return item.checkpoint, item.metadata, item.pending_writes


def test_a_copy_has_everything_and_shares_nothing(saver):
    graph = graphs.nested().compile(checkpointer=saver)
    graph.invoke({"log": []}, thread("t"))
    before = [contents(item) for item in saver.list(thread("t"))]

    saver.copy_thread("t", "copy")
    saver.delete_thread("t")

    copied = [contents(item) for item in saver.list(thread("copy"))]
    assert sorted(copied, key=repr) == sorted(before, key=repr)
    state = graph.invoke(Command(resume="yes"), thread("copy"))
    assert state["log"] == ["first", "first", "before", "yes", "after", "last"]


def test_a_copy_has_the_branches_that_were_left(saver):
    first = put(saver, thread("t"), {"n": 1})
    left = put(saver, first, {"n": 2})
    put(saver, first, {"n": 3})

    saver.copy_thread("t", "copy")

    assert ids(saver, thread("copy")) == ids(saver, thread("t"))
    id_ = left["configurable"]["checkpoint_id"]
    found = saver.get_tuple(thread("copy", checkpoint_id=id_))
    assert found.checkpoint["channel_values"] == {"n": 2}
    assert found.parent_config["configurable"] == {
        **first["configurable"],
        "thread_id": "copy",
    }


def test_a_copy_that_was_interrupted_is_finished(saver):
    chain(saver, "t", 4)
    saver.copy_thread("t", "copy")
    newest = saver.get_tuple(thread("t"))
    put(saver, newest.config, {"n": "more"})

    saver.copy_thread("t", "copy")

    assert ids(saver, thread("copy")) == ids(saver, thread("t"))


def test_a_copy_never_goes_over_another_thread(saver):
    chain(saver, "t", 2)
    chain(saver, "other", 2)
    before = ids(saver, thread("other"))

    with refused("thread_exists"):
        saver.copy_thread("t", "other")

    assert ids(saver, thread("other")) == before


def test_a_copy_of_a_fork_has_what_came_before_it(quick, quick_store):
    chain(quick, "t", 4)
    quick_store.thread("t").fork("fork", at="@~1")
    put(quick, quick.get_tuple(thread("fork")).config, {"n": "own"})

    quick.copy_thread("fork", "copy")

    assert ids(quick, thread("copy")) == ids(quick, thread("fork"))
    assert len(ids(quick, thread("copy"))) == 4
    assert quick_store.verify().ok


def test_a_copy_of_a_thread_that_was_rewound_has_its_head_there_too(quick, quick_store):
    chain(quick, "t", 3)
    rewound = quick_store.thread("t").rewind("@~1")

    quick.copy_thread("t", "copy")

    newest = quick.get_tuple(thread("t")).checkpoint["id"]
    assert quick_store.thread("copy").head.id == rewound.id
    assert quick.get_tuple(thread("copy")).checkpoint["id"] == newest
    assert len(quick_store.thread("copy").history(all=True)) == 3


def test_a_copy_of_a_fork_leaves_out_the_journal_of_a_thread_that_was_replaced(
    quick, quick_store
):
    first = chain(quick, "t", 1)
    quick.put_writes(first, [("n", "lost")], "task")
    put(quick, first, {"n": "fork point"})
    quick_store.thread("t").fork("fork")
    own = put(quick, quick.get_tuple(thread("fork")).config, {"n": "own"})
    quick.put_writes(own, [("n", "kept")], "task")
    quick.delete_thread("t")
    same_id = {"id": first["configurable"]["checkpoint_id"]}
    other = put(quick, thread("t"), {"n": "other"}, checkpoint=same_id)
    quick.put_writes(other, [("n", "of another thread")], "task")

    quick.copy_thread("fork", "copy")

    pending = [item.pending_writes for item in quick.list(thread("copy"))]
    assert pending == [[("task", "n", "kept")], [], []]
    assert quick_store.verify().ok


def test_the_copy_of_nothing_is_nothing(saver):
    saver.copy_thread("unknown", "copy")

    assert saver.get_tuple(thread("copy")) is None
