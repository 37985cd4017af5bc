"""A process that is killed in or after a tool pays once, or says that it is unknown."""

import pytest

from support.effort import QUICK
from support.programs import run_program

KILLED = "killed"
UNKNOWN = ["call_interrupted", []]
PAID = [None, ["paid bob"]]
TOLD = [None, ["paid bob, said the bank"]]
DURABILITIES = ["sync", "async", "exit"]

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(QUICK, reason="starts processes: make test"),
]


def test_whenever_it_is_killed_a_graph_pays_once_or_asks(tmp_path):
    # How the processes end that go on one after the other, each up to a point.
    expected = {
        # A payment that was made is resolved, one that was not made is made.
        "async:after,resolve": [KILLED, TOLD],
        "async:before,retry": [KILLED, PAID],
    }
    for durability in DURABILITIES:
        # Killed inside of the tool, the outcome is unknown.
        inside = f"{durability}:after,never,never"
        expected[inside] = [KILLED, UNKNOWN, UNKNOWN]
        # Killed after the tool, its result is used.
        expected[f"{durability}:later,never"] = [KILLED, PAID]

    found = run_program("kill_graph", tmp_path, *expected)

    ends = {graph: end for graph, (end, _) in zip(expected, found, strict=True)}
    assert ends == expected
    assert [payments for _, payments in found] == [1] * len(expected)
