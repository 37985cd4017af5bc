"""A fork of a graph's thread takes its subgraphs along, as they were."""

import asyncio

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

import holdfast
from adapters.langgraph import graphs
from adapters.langgraph.graphs import Log, thread
from holdfast.adapters.langgraph import HoldfastSaver


def remembering(**options):
    """A subgraph that counts its calls, in every run of the graph around it."""
    inner = StateGraph(Log)
    inner.add_node("count", lambda state: {"count": state.get("count", 0) + 1})
    inner.add_edge(START, "count")
    counter = inner.compile(checkpointer=True, name="counter")
    outer = StateGraph(Log)

    def ask(state):
        return {"log": [f"call {counter.invoke({'log': []})['count']}"]}

    outer.add_node("ask", ask)
    outer.add_edge(START, "ask")
    return outer.compile(**options)


@pytest.fixture
def store(place):
    url, options = place
    with holdfast.open(url, **options) as store:
        yield store

        assert store.verify().problems == ()


def call(graph, name):
    return graph.invoke({"log": []}, thread(name))["log"]


def test_a_fork_has_the_memory_of_subgraphs_at_its_checkpoint(store):
    graph = remembering(checkpointer=HoldfastSaver(store))
    for _ in range(3):
        call(graph, "t")

    store.thread("t").fork("now")
    store.thread("t").fork("before", at="@~3")
    store.thread("now").fork("again", at="@~6")

    assert call(graph, "now") == ["call 1", "call 2", "call 3", "call 4"]
    assert call(graph, "before") == ["call 1", "call 2", "call 3"]
    assert call(graph, "again") == ["call 1", "call 2"]
    assert call(graph, "t") == ["call 1", "call 2", "call 3", "call 4"]


def test_the_memory_is_that_of_the_line_that_is_forked(store):
    graph = remembering(checkpointer=HoldfastSaver(store))
    for _ in range(2):
        call(graph, "t")
    store.thread("t").rewind("@~3")
    call(graph, "t")
    [tip] = [c for c in store.thread("t").history(all=True) if c.step == 6][-1:]

    store.thread("t").fork("left behind", at=tip)

    assert call(graph, "left behind")[-1] == "call 3"


def test_a_fork_of_a_paused_thread_goes_on_in_the_subgraph(store):
    seen = []
    inner = StateGraph(Log)
    inner.add_node("before", lambda _: seen.append("before"))
    inner.add_node("ask", lambda _: {"log": [interrupt("May I?")]})
    inner.add_edge(START, "before")
    inner.add_edge("before", "ask")
    outer = StateGraph(Log)
    outer.add_node("inner", inner.compile())
    outer.add_edge(START, "inner")
    graph = outer.compile(checkpointer=HoldfastSaver(store))
    graph.invoke({"log": []}, thread("t"))

    store.thread("t").fork("yes")
    store.thread("t").fork("no")
    answers = [
        graph.invoke(Command(resume=name), thread(name))["log"]
        for name in ("yes", "no", "t")
    ]

    assert answers == [["yes"], ["no"], ["t"]]
    assert seen == ["before"]


def test_a_step_that_is_repeated_repeats_its_subgraph(store):
    seen = []
    inner = StateGraph(Log)
    inner.add_node("work", lambda _: seen.append("work"))
    inner.add_edge(START, "work")
    outer = StateGraph(Log)
    outer.add_node("inner", inner.compile())
    outer.add_edge(START, "inner")
    graph = outer.compile(checkpointer=HoldfastSaver(store))
    graph.invoke({"log": []}, thread("t"))

    store.thread("t").fork("again", at="@~1")
    graph.invoke(None, thread("again"))

    assert seen == ["work", "work"]
    assert [t.id for t in store.threads(prefix="again#")] == [
        t.id.replace("t#", "again#", 1) for t in store.threads(prefix="t#")
    ]


def test_other_threads_are_not_subgraphs(store):
    store.thread("plain").save({"n": 1})
    store.thread("plain#x").save({"n": 1})

    store.thread("plain").fork("fork")

    assert not store.threads(prefix="fork#")


def test_a_coroutine_forks_the_same(place):
    url, options = place

    async def work():
        async with await holdfast.open_async(url, **options) as store:
            graph = remembering(checkpointer=HoldfastSaver(store))
            await asyncio.to_thread(call, graph, "t")
            await store.thread("t").fork("fork")
            return await asyncio.to_thread(call, graph, "fork")

    assert asyncio.run(work()) == ["call 1", "call 2"]


def test_a_fork_has_all_its_subgraphs_or_is_refused(store):
    graph = remembering(checkpointer=HoldfastSaver(store))
    call(graph, "t")
    [inner] = store.threads(prefix="t#")
    store.thread(inner.id.replace("t#", "fork#", 1)).save({"taken": True})

    with graphs.refused("thread_exists"):
        store.thread("t").fork("fork")

    assert "fork" not in [thread.id for thread in store.threads()]
