"""A process that is killed in or after a tool pays once, or says that it is unknown."""

import subprocess
import sys
from pathlib import Path

import pytest

from support.effort import QUICK
from support.folders import PROGRAMS
from support.programs import ENVIRONMENT, TIMEOUT, run_program

KILLED = -9
DURABILITIES = ["sync", "async", "exit"]

pytestmark = pytest.mark.skipif(QUICK, reason="starts processes: make test")


class Agent:
    """A graph on a file, of which each run is a process."""

    def __init__(self, path: Path, durability: str) -> None:
        self.path, self.durability = str(path), durability

    def die(self, point: str) -> None:
        command = [PROGRAMS / "kill_graph.py", self.path, self.durability, point]
        ended = subprocess.run(
            [sys.executable, *map(str, command)],
            timeout=TIMEOUT,
            check=False,
            env=ENVIRONMENT,
        )
        assert ended.returncode == KILLED

    def run(self, how: str = "never") -> tuple[str | None, list[str]]:
        [said] = run_program("kill_graph", self.path, self.durability, how)
        return said["error"], said["answers"]

    @property
    def payments(self) -> int:
        bank = Path(f"{self.path}.bank")
        return len(bank.read_text().splitlines()) if bank.exists() else 0


@pytest.fixture(params=DURABILITIES)
def agent(request, tmp_path):
    return Agent(tmp_path / "agents.db", request.param)


@pytest.fixture
def usual(tmp_path):
    return Agent(tmp_path / "agents.db", "async")


def test_killed_inside_of_the_tool_the_outcome_is_unknown(agent):
    agent.die("after")

    assert agent.run() == ("call_interrupted", [])
    assert agent.run() == ("call_interrupted", [])
    assert agent.payments == 1


def test_an_unknown_payment_that_was_made_is_resolved(usual):
    usual.die("after")

    assert usual.run("resolve") == (None, ["paid bob, said the bank"])
    assert usual.payments == 1


def test_an_unknown_payment_that_was_not_made_is_made(usual):
    usual.die("before")

    assert usual.run("retry") == (None, ["paid bob"])
    assert usual.payments == 1


def test_killed_after_the_tool_its_result_is_used(agent):
    agent.die("later")

    assert agent.run() == (None, ["paid bob"])
    assert agent.payments == 1
