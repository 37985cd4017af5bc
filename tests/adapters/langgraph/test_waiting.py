"""A paused graph says what it waits for, also to programs without LangGraph."""

from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send, interrupt

import holdfast
from holdfast.adapters.langgraph import HoldfastSaver
from inner.views import Waiting, waiting

from .graphs import Log, asking, nested, thread


def open_questions(store, name="t"):
    found = store.thread(name)
    return store.runner.run(waiting, found.about)


def test_an_interrupt_is_shown_until_it_is_answered():
    with holdfast.open(":memory:") as store:
        graph = asking().compile(checkpointer=HoldfastSaver(store))

        graph.invoke({"log": []}, thread("t"))
        [asked] = graph.get_state(thread("t")).interrupts

        assert open_questions(store) == [Waiting(asked.id, "May I?", "ask")]

        graph.invoke(Command(resume="yes"), thread("t"))

        assert open_questions(store) == []


def test_the_question_of_a_subgraph_is_one_of_the_graph_around_it():
    with holdfast.open(":memory:") as store:
        graph = nested().compile(checkpointer=HoldfastSaver(store))

        graph.invoke({"log": []}, thread("t"))

        assert [(w.node, w.value) for w in open_questions(store)] == [
            ("inner", "May I?")
        ]


def test_of_several_sent_tasks_the_answered_one_waits_no_more():
    builder = StateGraph(Log)
    builder.add_node("work", lambda task: {"log": [interrupt(task["name"])]})
    builder.add_conditional_edges(
        START, lambda _: [Send("work", {"name": name}) for name in "abc"], ["work"]
    )
    with holdfast.open(":memory:") as store:
        graph = builder.compile(checkpointer=HoldfastSaver(store))

        graph.invoke({"log": []}, thread("t"))
        asked = open_questions(store)
        graph.invoke(Command(resume={asked[1].id: "yes"}), thread("t"))

        assert [w.value for w in asked] == ["a", "b", "c"]
        assert [w.value for w in open_questions(store)] == ["a", "c"]


def test_what_a_caller_recorded_on_a_checkpoint_is_no_question():
    with holdfast.open(":memory:") as store:
        graph = asking().compile(checkpointer=HoldfastSaver(store))
        graph.invoke({"log": []}, thread("t"))
        at = store.thread("t").get()
        for key, value in {"note": "seen", "0 note": {"writes": [1]}}.items():
            store.thread("t").record(key, value, checkpoint=at)

        [asked] = open_questions(store)
        graph.invoke(Command(resume="yes"), thread("t"))

        assert asked.value == "May I?"
        assert store.thread("t").load()["log"] == ["before", "yes", "after"]


def test_other_threads_wait_for_nothing():
    with holdfast.open(":memory:") as store:
        store.thread("plain").save({"log": []})

        assert open_questions(store, "plain") == []
