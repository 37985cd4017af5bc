"""A process that is killed in or after a tool pays once, or says that it is unknown."""

from pathlib import Path
from typing import Any

import pytest

from support.effort import QUICK
from support.programs import run_program

KILLED = "killed"
UNKNOWN = ["call_interrupted", []]
DURABILITIES = ["sync", "async", "exit"]

pytestmark = pytest.mark.skipif(QUICK, reason="starts processes: make test")


class Agent:
    """A graph on a file, of which each run is a process."""

    def __init__(self, path: Path, durability: str) -> None:
        self.path, self.durability = str(path), durability

    def runs(self, *points: str) -> list[Any]:
        """How runs end, of which each has a point at which it is killed."""
        return run_program("kill_graph", self.path, self.durability, *points)

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
    assert agent.runs("after", "never", "never") == [KILLED, UNKNOWN, UNKNOWN]
    assert agent.payments == 1


def test_an_unknown_payment_that_was_made_is_resolved(usual):
    resolved = [None, ["paid bob, said the bank"]]

    assert usual.runs("after", "resolve") == [KILLED, resolved]
    assert usual.payments == 1


def test_an_unknown_payment_that_was_not_made_is_made(usual):
    assert usual.runs("before", "retry") == [KILLED, [None, ["paid bob"]]]
    assert usual.payments == 1


def test_killed_after_the_tool_its_result_is_used(agent):
    assert agent.runs("later", "never") == [KILLED, [None, ["paid bob"]]]
    assert agent.payments == 1
