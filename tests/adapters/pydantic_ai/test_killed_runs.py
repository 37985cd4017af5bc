"""Runs whose process is killed, and that go on in a new one."""

import json
import signal
import subprocess
import sys

import pytest

from support.folders import PROGRAMS
from support.programs import ENVIRONMENT

DONE = "all are charged"


@pytest.fixture
def attempt(place, tmp_path):
    """Begins the run, or goes on with it, in a process of its own."""
    address, options = place
    if address == ":memory:":
        pytest.skip("is gone with its process")
    world = tmp_path / "world"

    def attempt(death=""):
        program = [sys.executable, str(PROGRAMS / "pydantic_run.py")]
        given = [address, json.dumps(options), str(tmp_path), death]
        ended = subprocess.run(
            program + given,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
            env=ENVIRONMENT,
        )
        expected = -signal.SIGKILL if death else 0
        assert ended.returncode == expected, ended.stderr
        said = [json.loads(line) for line in ended.stdout.splitlines()]
        return said, world.read_text().splitlines()

    return attempt


def test_a_killed_run_goes_on_and_nothing_is_asked_or_charged_twice(attempt):
    attempt("model:1")  # between two tools
    attempt("charge:1")  # inside of one, after it took effect
    said, world = attempt()

    assert said == ["call_interrupted"]  # the program then resolves it
    assert world == ["model 0", "charge 0", "model 1", "charge 1"]

    said, world = attempt()

    assert said == [DONE]
    assert world[4:] == ["model 2", "charge 2", "model 3"]
