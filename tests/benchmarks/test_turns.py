"""Two trees that take turns."""

import pytest
from benchmarks.turns_worker import WORKS

from benchmarks import turns

pytestmark = pytest.mark.processes


def test_this_tree_is_compared_with_a_commit_in_every_work(capsys):
    turns.main(["HEAD", "--rounds=1"])

    head, _, *rows = capsys.readouterr().out.splitlines()
    assert "against HEAD" in head
    assert [row.split("|")[1].strip() for row in rows] == list(WORKS)
    assert all(0.1 < float(row.split("|")[2]) < 10 for row in rows)
