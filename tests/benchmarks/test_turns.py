"""Two trees that take turns."""

import pytest
from benchmarks.turns_worker import ON_FILES, ON_POSTGRES

from benchmarks import turns

pytestmark = pytest.mark.processes


def test_this_tree_is_compared_with_a_commit_in_every_work(capsys):
    turns.main(["HEAD", "--rounds=1"])

    head, _, *rows = capsys.readouterr().out.splitlines()
    assert "against HEAD" in head
    assert [row.split("|")[1].strip() for row in rows] == list(ON_FILES)
    assert all(0.1 < float(row.split("|")[2]) < 10 for row in rows)


@pytest.mark.servers
def test_on_postgres_works_are_compared_near_and_far(capsys):
    works = [name for name in ON_POSTGRES if "append" in name]

    asked = [f"--work={name}" for name in works]
    turns.main(["HEAD", "--postgres", "--rounds=1", "--trip=2", *asked])

    _, _, *rows = capsys.readouterr().out.splitlines()
    cells = [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows]
    assert [(work, trip) for work, trip, *_ in cells] == [
        (work, trip) for trip in ("0 ms", "2 ms") for work in works
    ]
    assert all(float(ratio) > 0 for _, _, *ratios in cells for ratio in ratios)
