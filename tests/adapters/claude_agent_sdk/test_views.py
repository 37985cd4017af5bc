"""The command line shows sessions as messages and steps."""

import asyncio

import pytest

from adapters.claude_agent_sdk.entries import (
    AGENT,
    KEY,
    SESSION,
    replied,
    result,
    said,
    titled,
)
from holdfast.adapters.claude_agent_sdk import HoldfastSessionStore
from holdfast.cli import main

QUEUED = {"type": "queue-operation", "operation": "enqueue", "sessionId": SESSION}


@pytest.fixture
def shown(tmp_path, capsys):
    """Runs a command on a store with a session and a subagent."""
    path = str(tmp_path / "agents.db")

    async def body():
        async with HoldfastSessionStore(path) as sessions:
            await sessions.append(KEY, [QUEUED, said(1, "Refund order 7")])
            call = ("toolu_1", "lookup", {"order": 7})
            await sessions.append(KEY, [replied(2, "I look.", call), titled("Refund")])
            await sessions.append(KEY, [result(3, "toolu_1", "paid 129"), QUEUED])
            await sessions.append(AGENT, [said(5, "look around")])
            return sessions.thread(KEY).id

    name = asyncio.run(body())

    def run(command, *arguments):
        given = [name if a == "SESSION" else a for a in arguments]
        assert main([command, *given, "--store", path]) == 0
        return capsys.readouterr().out

    return run


def test_log_has_a_line_for_each_batch_with_what_was_said_last(shown):
    lines = shown("log", "SESSION").splitlines()

    for line, text in zip(
        lines,
        ["paid 129", 'assistant: I look. lookup({"order": 7})', "user: Refund"],
        strict=True,
    ):
        assert text in line


def test_show_and_search_give_messages_without_bookkeeping(shown):
    messages = shown("show", "--messages", "SESSION").splitlines()
    found = shown("search", "paid")

    assert [line.split()[:2] for line in messages] == [
        ["[0]", "user"],
        ["[1]", "assistant"],
        ["[2]", "tool"],
    ]
    assert found.split()[1:] == ["tool", "paid", "129"]
