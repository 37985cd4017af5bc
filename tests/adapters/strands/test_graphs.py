"""Graphs of agents: their state is kept with the session."""

import json

import pytest
from strands import Agent
from strands.multiagent import GraphBuilder
from strands.types.exceptions import SessionException

from adapters.strands.scripted import IS_OLD, ScriptedModel
from adapters.strands.sessions import SESSIONS


def graph(session, *replies):
    """Two agents, one after the other."""
    builder = GraphBuilder()
    for name, reply in zip(("research", "write"), replies, strict=True):
        model = ScriptedModel(reply)
        worker = Agent(model=model, name=name, callback_handler=None)
        builder.add_node(worker, name)
    builder.add_edge("research", "write")
    builder.set_entry_point("research")
    builder.set_max_node_executions(10)
    return builder.set_session_manager(session).set_graph_id("report").build()


def is_between(thread, checkpoint):
    """Whether the first agent is done at a checkpoint, and the second is not."""
    return '"next_nodes_to_execute": ["write"]' in json.dumps(thread.load(checkpoint))


@pytest.mark.parametrize("kind", SESSIONS)
def test_a_graph_goes_on_at_its_next_node(kind, store):
    if IS_OLD and kind == "snapshots":
        pytest.skip("graphs have no snapshots")
    graph(SESSIONS[kind](store), "facts", "the report")("write a report")
    thread = store.thread(next(t.id for t in store.threads() if "report" in t.id))
    line = thread.history()
    thread.rewind(next(found for found in line if is_between(thread, found)))

    result = graph(SESSIONS[kind](store), KeyError, "another")("write a report")

    assert result.status.value == "completed"
    assert str(result.results["research"].result).strip() == "facts"
    assert str(result.results["write"].result).strip() == "another"


def test_of_two_runs_of_a_graph_the_slower_is_refused(filed):
    slower = graph(SESSIONS["repository"](filed), "facts", "the report")
    graph(SESSIONS["repository"](filed), "facts", "the report")("write a report")

    with pytest.raises(SessionException, match="another agent"):
        slower("write a report")
