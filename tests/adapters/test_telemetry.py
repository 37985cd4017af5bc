"""What frameworks do with a store is part of the trace in which they run."""

from __future__ import annotations

import asyncio

import pytest
from agents import Agent, Runner

import holdfast
from adapters.langgraph.graphs import chat, nested, say, thread
from adapters.openai_agents.scripted_model import Scripted, says
from holdfast.adapters.langgraph import HoldfastSaver
from holdfast.adapters.openai_agents import HoldfastSession
from support.telemetry import Exported

SAID = "what-the-user-said"


@pytest.fixture
def exported():
    return Exported()


def check_children(exported, parent):
    trace = parent.get_span_context().trace_id
    assert {span.context.trace_id for span in exported.spans()} == {trace}
    assert {span.parent.span_id for span in exported.spans()} == {
        parent.get_span_context().span_id
    }
    assert SAID not in exported.text()


def test_a_graph_saves_within_the_trace_of_its_caller(place, exported):
    url, options = place
    with holdfast.open(url, telemetry=exported.telemetry, **options) as store:
        graph = chat().compile(checkpointer=HoldfastSaver(store))
        with exported.trace() as parent:
            graph.invoke(say(SAID), thread("t1"))
        check_children(exported, parent)
        saved = store.thread("t1").head

    [*_, put] = exported.spans("put")
    assert {"put thread", "get_tuple thread"} <= set(exported.names())
    assert put.attributes["gen_ai.conversation.id"] == "t1"
    assert put.attributes["holdfast.checkpoint"] == saved.id
    assert f"{put.context.span_id:016x}" in saved.traceparent


def test_an_awaited_graph_saves_within_the_trace_of_its_caller(place, exported):
    url, options = place

    async def run():
        telemetry = exported.telemetry
        async with holdfast.open_async(url, telemetry=telemetry, **options) as store:
            graph = chat().compile(checkpointer=HoldfastSaver(store))
            with exported.trace() as parent:
                await graph.ainvoke(say(SAID), thread("t1"))
            return parent

    check_children(exported, asyncio.run(run()))


def test_a_graph_within_a_graph_belongs_to_the_same_conversation(exported):
    with HoldfastSaver(":memory:", telemetry=exported.telemetry) as saver:
        graph = nested().compile(checkpointer=saver)
        graph.invoke({"log": []}, thread("t1"))

    puts = exported.spans("put")
    assert {span.attributes["gen_ai.conversation.id"] for span in puts} == {"t1"}
    assert any("#" in span.attributes["holdfast.thread"] for span in puts)


def test_a_session_saves_within_the_trace_of_its_run(exported):
    async def run():
        with holdfast.open(":memory:", telemetry=exported.telemetry) as store:
            session = HoldfastSession("chat", store, agent="clerk")
            agent = Agent("clerk", model=Scripted(says("hello")))
            with exported.trace() as parent:
                await Runner.run(agent, SAID, session=session)
                await session.history()
            return parent

    check_children(exported, asyncio.run(run()))
    for span in exported.spans():
        assert span.attributes["gen_ai.conversation.id"] == "chat"
    assert exported.names()[-1] == "history thread"
    assert "change conversation" in exported.names()
