"""The page of the recipe does what it says, also when the process is killed."""

import json
import signal
import subprocess
import sys

from holdfast.cli import main
from support.pages import BLOCK, page_of, printed, shown

PAGE = page_of("crewai")

KILLED_IN_ITS_SECOND_STEP = """
import os, signal, sys
from crewai.flow.flow import Flow, listen, start
from crewai.flow.persistence import persist


@persist(HoldfastFlowPersistence(address="agents.db"))
class Count(Flow):
    @start()
    def first(self):
        self.state.setdefault("done", []).append(f"first in run {sys.argv[1]}")

    @listen(first)
    def second(self):
        if sys.argv[1] == "1":
            os.kill(os.getpid(), signal.SIGKILL)
        self.state["done"].append("second")


Count(suppress_flow_events=True).kickoff(inputs={"id": "a/b"})
"""


def test_the_page_prints_what_it_shows(tmp_path):
    assert printed(PAGE, tmp_path) == shown(PAGE)


def test_a_flow_that_was_killed_has_its_state_in_a_new_process(tmp_path, capsys):
    recipe = BLOCK.findall(PAGE.read_text())[0][0]
    program = [sys.executable, "-c", recipe + KILLED_IN_ITS_SECOND_STEP]

    killed = subprocess.run([*program, "1"], cwd=tmp_path, check=False)
    subprocess.run([*program, "2"], cwd=tmp_path, check=True)

    assert killed.returncode == -signal.SIGKILL
    assert main(["show", "flow:a%2Fb", "state.done", "-C", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out) == [
        "first in run 1",
        "first in run 2",
        "second",
    ]
