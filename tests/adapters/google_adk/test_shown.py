"""The command line, searches and effects see sessions as messages and steps."""

import asyncio
import json

import pytest

import holdfast
from adapters.google_adk.agents import HERE, runner, turn
from holdfast.adapters.google_adk import HoldfastSessionService, session_thread
from holdfast.cli import main
from holdfast.conversations import tally

pytestmark = pytest.mark.filterwarnings("ignore:.EXPERIMENTAL")

THREAD = session_thread("app", "ann", "s1")


@pytest.fixture
def path(tmp_path):
    """A file with a session of one turn, which was rewound."""
    path = tmp_path / "agents.db"

    async def body():
        async with HoldfastSessionService(path) as sessions:
            await sessions.create_session(**HERE)
            running = runner(sessions)
            events = await turn(running, "please count")
            await running.rewind_async(
                user_id="ann",
                session_id="s1",
                rewind_before_invocation_id=events[0].invocation_id,
            )

    asyncio.run(body())
    return path


def said(capsys, path, *arguments):
    assert main([*arguments, "--store", str(path)]) == 0
    return capsys.readouterr().out


def test_a_log_shows_who_said_and_called_what(path, capsys):
    log = said(capsys, path, "log", THREAD)

    assert "user: please count" in log
    assert 'assistant: bump({"by": 1})' in log
    assert '{"n":1}' in log
    assert "assistant: counted 1" in log
    assert "user: rewound to before e-" in log
    assert "invocation_id" not in log


def test_a_checkpoint_shows_what_an_event_changed(path, capsys):
    shown = said(capsys, path, "show", f"{THREAD}@4")

    assert '+ ["state:n"]  1' in shown
    assert "state:user" not in shown


def test_a_search_finds_what_was_said_and_what_tools_gave(path, capsys):
    assert f"{THREAD}[0]  user" in said(capsys, path, "search", "PLEASE count")
    matches = json.loads(said(capsys, path, "search", '"n":1', "--json"))["matches"]
    assert [match["role"] for match in matches] == ["tool"]


def test_the_messages_are_counted_like_those_of_any_provider(path):
    with holdfast.open(path) as store:
        messages = store.thread(THREAD).load()["messages"]

    counted = tally(messages)

    assert counted.exchanges >= 1
