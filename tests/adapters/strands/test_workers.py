"""Workers that are killed, and workers that race for one session."""

import json
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from strands.types.exceptions import (
    EventLoopException,
    SessionException,
    StorageError,
)

import holdfast
from adapters.strands.scripted import agent, said
from adapters.strands.sessions import SESSIONS
from support.programs import ENVIRONMENT

PROGRAM = Path(__file__).parent / "interrupted_agent.py"
TURNS = 6
# In the middle of a turn Strands wraps what a session raises.
REFUSALS = (SessionException, StorageError, EventLoopException)


@pytest.mark.parametrize("kind", SESSIONS)
@pytest.mark.parametrize("place", ["file", "directory", "postgres"], indirect=True)
def test_a_session_killed_inside_a_tool_goes_on_in_a_new_process(kind, place):
    address, options = place
    ended = subprocess.run(
        [sys.executable, PROGRAM, kind, address, json.dumps(options)],
        check=False,
        env=ENVIRONMENT,
        timeout=100,
    )
    assert ended.returncode == -signal.SIGKILL

    with holdfast.open(address, **options) as store:
        resumed = agent(SESSIONS[kind](store), "I ask the bank first")
        resumed("What happened?")

    asked = resumed.model.asked[0]
    assert said(asked)[:2] == ["Charge 5 please", "charge()"]
    # Strands itself says to the model that the call has no result.
    assert asked[2]["content"][0]["toolResult"]["status"] == "error"
    assert said(asked)[-1] == "What happened?"
    assert resumed.state.get() == {"customer": "ann"}


@pytest.mark.parametrize("kind", SESSIONS)
def test_no_turn_of_two_workers_is_lost(kind, place):
    address, options = place

    def work(name, store):
        for number in range(TURNS):
            refused = True
            while refused:
                try:
                    worker = agent(SESSIONS[kind](store), f"answer {name}{number}")
                    worker(f"question {name}{number}")
                    refused = False
                except REFUSALS:
                    pass

    with holdfast.open(address, **options) as store, ThreadPoolExecutor(2) as pool:
        if address == ":memory:":
            others = [store, store]
        else:
            others = [holdfast.open(address, **options) for _ in range(2)]
        list(pool.map(work, "ab", others))
        texts = said(agent(SESSIONS[kind](store)).messages)

    wanted = {f"answer {name}{number}" for name in "ab" for number in range(TURNS)}
    answers = [text for text in texts if text.startswith("answer")]
    assert sorted(answers) == sorted(wanted)
    for text in wanted:
        before = texts[texts.index(text) - 1]
        assert before == text.replace("answer", "question")
