"""The command line marks the threads in which a framework waits for a person."""

from __future__ import annotations

import asyncio
import json

import holdfast
from adapters.langgraph.graphs import asking, thread
from holdfast.adapters.langgraph import HoldfastSaver
from holdfast.cli import main
from programs import paused_runs


def said(capsys, path, *arguments):
    assert main([*arguments, "--store", str(path)]) == 0
    return capsys.readouterr().out


def test_a_paused_run_of_openai_agents_is_marked_until_it_is_resumed(tmp_path, capsys):
    path = tmp_path / "agents.db"
    asyncio.run(paused_runs.paused(str(path)))

    listed = said(capsys, path, "threads")
    shown = said(capsys, path, "show", "conversation:refund-4812")
    [waits] = json.loads(said(capsys, path, "threads", "--json"))["threads"]
    asyncio.run(paused_runs.resumed(str(path)))

    assert "waits: a paused run" in listed
    assert "the thread waits\n  a paused run of clerk\n" in shown
    [paused] = waits["waiting"]
    assert (paused["kind"], paused["agent"]) == ("paused_run", "clerk")
    assert "waits" not in said(capsys, path, "threads")
    assert "waits" not in said(capsys, path)


def test_an_interrupt_of_a_graph_is_marked_and_its_question_shown(tmp_path, capsys):
    path = tmp_path / "agents.db"
    with holdfast.open(path) as store:
        graph = asking().compile(checkpointer=HoldfastSaver(store))
        graph.invoke({"log": []}, thread("t"))

    overview = said(capsys, path)
    shown = said(capsys, path, "show", "t")
    document = json.loads(said(capsys, path, "show", "t", "--json"))

    assert "waits: 1 interrupt" in overview
    assert 'interrupt in ask: "May I?"' in shown
    [asked] = document["waiting"]
    assert (asked["kind"], asked["node"], asked["value"]) == (
        "interrupt",
        "ask",
        "May I?",
    )
