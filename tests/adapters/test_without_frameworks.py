"""A store tells of the calls of sessions and graphs without their frameworks."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest
from agents.tracing import set_tracing_disabled

import holdfast
from adapters.langgraph.graphs import thread
from adapters.langgraph.paying import Bank as GraphBank
from adapters.langgraph.paying import Model, agent, say
from adapters.openai_agents.bank import Bank, wants
from holdfast.adapters.langgraph import HoldfastSaver, once
from holdfast.adapters.openai_agents import HoldfastSession

set_tracing_disabled(True)

BLOCKED = """
import sys
for name in ("agents", "openai", "langgraph", "langchain_core"):
    sys.modules[name] = None
from holdfast.cli import main
for name in ("conversation:chat", "t"):
    main(["effects", name, "--left-behind", "--store", sys.argv[1]])
"""


def pay_and_clear(store):
    async def body():
        session = HoldfastSession("chat", store)
        await Bank().pay(session, wants("a"))
        await session.clear_session()

    asyncio.run(body())


def pay_and_update(store):
    bank, model = GraphBank(), Model([("bob", 5), ("eve", 6)])
    graph = agent(model, [once(bank.tool())])
    graph = graph.compile(checkpointer=HoldfastSaver(store))
    bank.fail = lambda: bank.paid and 1 / 0
    with pytest.raises(ZeroDivisionError):
        graph.invoke(say("pay both"), thread("t") | {"max_concurrency": 1})
    graph.update_state(thread("t"), say("never mind"), as_node="tools")


def test_calls_that_were_left_behind_are_told_without_the_frameworks(tmp_path):
    path = tmp_path / "agents.db"
    with holdfast.open(path) as store:
        pay_and_clear(store)
        pay_and_update(store)

    told = subprocess.run(
        [sys.executable, "-c", BLOCKED, str(path)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout

    assert [_payee(line) for line in told.splitlines()] == ["bob", "bob", "eve"]


def _payee(line):
    return line.partition('{"to": "')[2].partition('"')[0]
