"""`make demo` runs to its end, keeps its word and fits whatever it is printed to."""

import contextlib
import os
import pty
import re
import subprocess
import sys

import pytest

from support.folders import ROOT

DEMO = [sys.executable, os.path.join(ROOT, "demo", "run.py"), "--fast"]
WIDTH = 88
NEVER_KILLED = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from demo import cost, crash, story
cost.LONG_RUN_ORDERS = 13
crash.FATAL = crash.Event("recorded", 1_000, 4817, "issue_refund")
sys.exit(story.main(["--fast"]))
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    hidden = {"NO_COLOR", "FORCE_COLOR", "PYTHONIOENCODING"}
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    folder = str(tmp_path_factory.mktemp("demo"))
    return kept | {"TMPDIR": folder, "TERM": "xterm", "PYTHONUTF8": "1"}


@pytest.fixture(scope="module")
def piped(environment):
    return run(DEMO, environment)


def run(command, environment):
    return subprocess.run(
        command, env=environment, capture_output=True, encoding="utf-8", check=False
    )


def run_on_a_terminal(environment):
    parent, child = pty.openpty()
    with subprocess.Popen(DEMO, env=environment, stdout=child, stdin=child) as process:
        os.close(child)
        shown = bytearray()
        with contextlib.suppress(OSError):  # EIO: the other side has closed it
            while block := os.read(parent, 65_536):
                shown += block
    os.close(parent)
    return process.returncode, shown.decode()


def test_the_demo_kills_an_agent_and_keeps_every_claim(piped):
    assert (piped.returncode, piped.stderr) == (0, "")
    assert "NOT SO" not in piped.stdout
    for line in (
        r"4817  Ines Duarte  .* refund 149\.00   ✖ kill -9",
        r"✓ process \d+ ended by signal 9",
        r"4817  Ines Duarte  .* found in the journal ✓  mail ✓   step 25",
        r"✓ process \d+ began at step 23",
        r"✓ the tools' own ledger: 48 effects, 48 distinct calls",
        r"4824  Ada Moreno  .* refund  89\.00   ✖ kill -9",
        r"✓ the journal knows: refund-4824 began, refund-4825 never did",
        r"4824  Ada Moreno  .* refund  89\.00 asked about, the bank has it ✓",
        r"4825  Tomas Lindqvist  .* refund 129\.00 ✓",
        r"✓ 2 refunds in the tools' ledger, one by \d+, one by \d+",
        r"✓ the fork copied 0 bytes of state",
        r"~ closed\[11\]\.by  \"issue_credit\" -> \"issue_refund\"",
        r">>> thread\.undo\(\)\.step +→ 49",
        r">>> project\.restore\(thread, '@~1', state=True\)\.written",
        r"✓ undo brings file and state forward again",
        r">>> store\.verify\(\)\.ok +→ True",
        r"smaller by +\d+x +\d+x",
        r"✓ 17 of 17 claims checked and true",
    ):
        assert re.search(line, piped.stdout), line


def test_piped_output_is_plain_and_narrow(piped, environment):
    lines = piped.stdout.splitlines()

    wide = [line for line in lines if len(line) > WIDTH]

    assert "\x1b" not in piped.stdout
    assert all(environment["TMPDIR"] in line for line in wide), wide


def test_the_lines_printed_at_the_end_work(piped, environment):
    typed = re.findall(r"^ +>>> (.*)$", piped.stdout, re.MULTILINE)[-3:]
    program = "\n".join([*typed[:-1], f"print({typed[-1]})"])

    found = run([sys.executable, "-c", program], environment)

    assert found.returncode == 0, found.stderr
    assert found.stdout.startswith("[(49, 'closed-4823'), (48, None)")


def test_the_commands_printed_at_the_end_work(piped, environment):
    typed = re.findall(r"^ +\$ (.*)$", piped.stdout, re.MULTILINE)

    ran = [
        subprocess.run(
            command,
            shell=True,
            cwd=ROOT,
            env=environment,
            capture_output=True,
            encoding="utf-8",
            check=True,
        ).stdout
        for command in typed
    ]

    graph, difference, shown = ran
    assert re.search(r"^● +what-if@50 .*\(what-if\)", graph)
    assert "├─╯" in graph
    assert '~ closed[11].by  "issue_credit" -> "issue_refund"' in difference
    assert "recall-kx17@25 [closed-4817]" in shown


def test_a_terminal_gets_colour(environment):
    status, shown = run_on_a_terminal(environment)

    assert status == 0
    assert "\x1b[1;31m✖ kill -9\x1b[0m" in shown


def test_a_terminal_can_refuse_colour_and_unicode(environment):
    plain = {"NO_COLOR": "1", "PYTHONIOENCODING": "latin-1"}

    status, shown = run_on_a_terminal(environment | plain)

    assert status == 0
    assert "\x1b" not in shown
    assert shown.isascii()
    assert "X kill -9" in shown


def test_a_claim_that_does_not_hold_is_an_exit_status(environment):
    shown = run([sys.executable, "-c", NEVER_KILLED], environment)

    assert shown.returncode == 1
    assert re.search(r"✖ NOT SO: process \d+ ended by signal 0", shown.stdout)
