"""The command line shows runs as steps and histories as messages."""

import asyncio

import pytest
from agent_framework import AgentExecutor, Content, Message

import holdfast
from adapters.agent_framework.workflows import agent, builder
from holdfast.adapters.agent_framework import (
    HoldfastCheckpointStorage,
    HoldfastHistoryProvider,
)
from holdfast.cli import main


async def talk(store):
    storage = HoldfastCheckpointStorage(store)
    writer, critic = (AgentExecutor(agent()[0], id=n) for n in ("writer", "critic"))
    team = builder(writer, storage, "team").add_edge(writer, critic).build()
    await team.run("write a poem")

    call = Content.from_function_call("c1", "pay", arguments='{"to": "ann"}')
    result = Content.from_function_result("c1", result="paid ann")
    turn = [
        Message("user", ["please pay ann"]),
        Message("assistant", [call]),
        Message("tool", [result]),
        Message("assistant", ["it is paid"]),
    ]
    for message in turn:
        await HoldfastHistoryProvider(store).save_messages("s1", [message])


@pytest.fixture
def show(tmp_path, capsys):
    """What a command prints about a store in which agents have worked."""
    path = str(tmp_path / "agents.db")
    with holdfast.open(path) as store:
        asyncio.run(talk(store))
        [run] = store.threads(prefix="workflow:team/")

    def run_command(*words):
        words = [word.replace("RUN", run.id) for word in words]
        assert main(["--store", path, "--no-pager", *words]) == 0
        return capsys.readouterr().out

    return run_command


def test_the_log_of_a_run_has_what_the_executors_said_to_one_another(show):
    log = show("log", "RUN")

    assert "superstep critic: answer 1" in log
    assert "superstep writer: answer 1" in log
    assert "previous_checkpoint_id" not in log
    assert "iteration_count" in show("diff", "RUN@1", "RUN@2")


def test_a_history_is_shown_and_found_as_messages(show):
    log = show("log", "history:s1")

    assert "paid ann" in log
    assert "user: please pay ann" in log
    assert "assistant  it is paid" in show("search", "is paid")
    assert "messages  list of 4" in show("show", "history:s1")
