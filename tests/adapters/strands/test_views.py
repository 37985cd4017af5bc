"""The command line on sessions of Strands: messages and steps, not bookkeeping."""

import re

import pytest

import holdfast
from adapters.strands.scripted import agent
from adapters.strands.sessions import SESSIONS
from holdfast.cli import main


@pytest.mark.parametrize("kind", SESSIONS)
def test_commands_show_messages_and_calls(kind, tmp_path, capsys):
    path = str(tmp_path / "agents.db")
    with holdfast.open(path) as store:
        worker = agent(SESSIONS[kind](store), ("add", {"a": 1, "b": 2}), "It is three")
        worker("What is 1 + 2?")
        thread = next(t.id for t in store.threads() if "default" in t.id)

    def shown(*arguments):
        assert main([*arguments, "--store", path]) == 0
        return capsys.readouterr().out

    log = shown("log", thread)
    assert 'assistant: add({"a": 1, "b": 2})' in log
    assert re.search("tool( add →|:) 3", log)
    assert "user: What is 1 + 2?" in log
    assert "What is 1 + 2?" in shown("show", thread, "--messages")
    assert "assistant  It is three" in shown("search", "three")
