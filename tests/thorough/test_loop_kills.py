"""The loop of docs/loop.md, killed before each of its lines and at each write."""

import pytest

from support import databases, servers
from support.programs import run_program


@pytest.mark.parametrize("door", ["blocking", "awaited"])
@pytest.mark.parametrize(
    ("place", "lines", "writes"),
    [("store.db", 1, 0), ("store.db", 0, 1), ("dir:store", 1, 0), ("dir:store", 0, 2)],
)
def test_the_loop_of_the_page_killed_everywhere(tmp_path, door, place, lines, writes):
    [report] = run_program("loop_on_the_page", tmp_path, door, place, lines, writes)

    assert report["wrong"] == []
    assert report["killed"] > 70


# Awaited, a program also has a moment whenever it waits for the server.
@pytest.mark.parametrize(("door", "lines"), [("blocking", 2), ("awaited", 6)])
@pytest.mark.parametrize("name", servers.NAMES)
def test_the_loop_of_the_page_killed_on_postgresql(tmp_path, door, lines, name):
    with databases.database(servers.shared(name)) as url:
        [report] = run_program("loop_on_the_page", tmp_path, door, url, lines, 0)

    assert report["wrong"] == []
    assert report["killed"] > 35
