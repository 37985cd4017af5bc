"""The command line of Claude that the SDK brings along, with a model with a script."""

import asyncio
import json
import shutil
import subprocess
import sys

import pytest

import holdfast
from adapters.claude_agent_sdk.claude import Claude
from adapters.claude_agent_sdk.scripted_model import HELD, serving
from holdfast.adapters.claude_agent_sdk import HoldfastSessionStore
from holdfast.cli import main
from support.effort import QUICK
from support.folders import PROGRAMS
from support.programs import ENVIRONMENT

FORK = "7a3d1e5f-0b62-4c8f-9d2e-1a4b6c8d0e22"


@pytest.fixture
def model():
    with serving() as model:
        yield model


@pytest.fixture
def claude(tmp_path, model):
    (tmp_path / "project").mkdir()
    return Claude(tmp_path, model.env)


def test_claude_goes_on_from_the_store_from_a_rewind_and_from_a_fork(claude, capsys):
    async def body():
        told = await claude.ask("prompt-one")
        imported = await imported_ids(claude, told.session_id)
        shutil.rmtree(claude.config)
        told = await claude.ask("prompt-two", resume=told.session_id)
        assert told.result == "2 prompts"

        async with HoldfastSessionStore(claude.path) as sessions:
            key, fork = claude.key(told.session_id), claude.key(FORK)
            entries = await sessions.load(key)
            assert ids(entries)[: len(imported)] == imported
            await sessions.thread(key).fork(sessions.thread(fork).id)
            await sessions.thread(key).rewind("@1")
        again = await claude.ask("prompt-other", resume=told.session_id)
        forked = await claude.ask("prompt-three", resume=FORK)
        assert [again.result, forked.result] == ["2 prompts", "3 prompts"]
        return sessions.thread(fork).id

    name = asyncio.run(body())
    assert main(["show", "--messages", name, "--store", claude.path]) == 0
    lines = [
        line.split(maxsplit=2)[1:] for line in capsys.readouterr().out.splitlines()
    ]
    assert lines == [
        ["user", "prompt-one"],
        ["assistant", 'Bash({"command": "echo hi from a tool"})'],
        ["tool", "hi from a tool"],
        ["assistant", "1 prompts"],
        ["user", "prompt-two"],
        ["assistant", "2 prompts"],
        ["user", "prompt-three"],
        ["assistant", "3 prompts"],
    ]


@pytest.mark.skipif(QUICK, reason="starts processes: make test")
def test_claude_goes_on_after_the_process_was_killed_within_a_turn(
    claude, model, tmp_path
):
    program = [sys.executable, PROGRAMS / "ask_claude.py"]
    arguments = [tmp_path, json.dumps(model.env), HELD]
    asking = subprocess.Popen([*program, *arguments], env=ENVIRONMENT)
    with holdfast.open(claude.path) as store:
        cursor, found = 0, ()
        while not found:
            cursor = store.changes(after=cursor, timeout=60).cursor or cursor
            found = store.search(HELD)
        asking.kill()
        asking.wait()
        shutil.rmtree(claude.config)
        model.released.set()
        session = store.thread(found[0].thread).load()["messages"][0]["sessionId"]

    told = asyncio.run(claude.ask("prompt-again", resume=session))

    assert told.result == "2 prompts"


async def imported_ids(claude, session):
    """What an import of Claude's own files gives; they have lines of their own."""
    with holdfast.open(":memory:") as store:
        assert store.import_from(claude.config / "projects").is_complete
        return ids(await HoldfastSessionStore(store).load(claude.key(session)))


def ids(entries):
    return [entry["uuid"] for entry in entries if "uuid" in entry]
