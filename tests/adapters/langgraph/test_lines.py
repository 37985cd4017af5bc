"""Everyone says of a graph's calls what its saver says: which were left behind."""

import json

import pytest

import holdfast
from adapters.langgraph.graphs import thread
from adapters.langgraph.paying import Bank, Model, agent, before, say
from holdfast.adapters.langgraph import HoldfastSaver, once
from holdfast.cli import main

T = thread("t")


def updated(graph):
    graph.update_state(T, say("never mind"), as_node="tools")


def given_new_input(graph):
    graph.invoke(say("never mind"), T)


def closed():
    raise OSError("the bank is closed")


def paid_and_cut_off(store, bank):
    """A graph whose step failed after its first payment: the state has no result."""
    model = Model([("bob", 5), ("eve", 6)], "never mind")
    graph = agent(model, [once(bank.tool())])
    graph = graph.compile(checkpointer=HoldfastSaver(store))
    bank.fail = lambda: bank.paid and closed()
    with pytest.raises(OSError, match="closed"):
        graph.invoke(say("pay both"), T | {"max_concurrency": 1})
    return graph


def said(capsys, path, *arguments):
    assert main([*arguments, "--json", "--store", str(path)]) == 0
    return json.loads(capsys.readouterr().out)


def people(effects):
    return [effect.arguments["to"] for effect in effects]


@pytest.mark.parametrize("back", [updated, given_new_input])
def test_a_call_without_a_result_in_the_state_is_left_behind_for_everyone(
    back, tmp_path, capsys
):
    path, bank = tmp_path / "agents.db", Bank()
    with holdfast.open(path) as store:
        graph = paid_and_cut_off(store, bank)
        waits = store.thread("t").effects()
        back(graph)
        undoable = HoldfastSaver(store).compensate(T, [])
        listed = store.thread("t").effects()
        left = store.thread("t").effects(left_behind=True)

    here = said(capsys, path, "effects", "t")
    behind = said(capsys, path, "effects", "t", "--left-behind")
    preview = said(capsys, path, "rewind", "t@1", "-n")

    assert people(waits) == people(left) == ["bob", "eve"]
    assert people(undoable.kept) == ["bob"]
    assert listed == here["effects"] == preview["left_behind"] == []
    assert [e["call_id"] for e in behind["effects"]] == [e.call_id for e in left]


def test_a_step_that_is_replayed_in_vain_still_has_its_calls(memory):
    graph = paid_and_cut_off(memory, Bank())

    with pytest.raises(OSError, match="closed"):
        graph.invoke(None, before(graph, "tools", T))

    assert memory.thread("t").get().metadata["source"] == "fork"
    assert "bob" in people(memory.thread("t").effects())
    assert memory.thread("t").effects(left_behind=True) == []
