"""The loop that docs/loop.md tells readers to copy, killed wherever it can be."""

import re

import pytest

from support import databases, servers
from support.folders import DOCS
from support.programs import run_program

pytestmark = pytest.mark.processes

PAGE = (DOCS / "loop.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def functions(name):
    """The two functions of a loop, up to the program that uses them."""
    [block] = [block for block in BLOCKS if f"def {name}(" in block]
    start = block.index("def decide")
    return block[start : re.search(r"\n\n\n(with|async def main)", block).start()]


def test_the_loop_to_copy_is_short():
    assert len(functions("work").splitlines()) <= 30


def test_the_awaited_loop_says_what_the_blocking_one_says():
    awaited = re.sub(r"\basync |\bawait |_async\b", "", functions("work_async"))
    blocking = re.sub(r'\n    """.*"""', "", functions("work"))

    assert awaited == blocking


# At some of the moments; tests/thorough has them all.
@pytest.mark.parametrize(
    ("door", "place", "lines", "writes", "most_unknown"),
    [
        ("blocking", "store.db", 8, 48, 15),
        ("awaited", "store.db", 16, 72, 15),
        ("blocking", "dir:store", 30, 80, 10),
        ("awaited", "dir:store", 36, 100, 10),
    ],
)
def test_the_loop_of_the_page_killed_anywhere_ends_as_if_left_alone(
    tmp_path, door, place, lines, writes, most_unknown
):
    [report] = run_program("loop_on_the_page", tmp_path, door, place, lines, writes)

    assert report["wrong"] == []
    assert report["killed"] > 10
    assert 0 < report["unknown"] <= most_unknown


@pytest.mark.servers
def test_the_loop_of_the_page_killed_on_postgresql_ends_as_if_left_alone(tmp_path):
    with databases.database(servers.shared(servers.NAMES[0])) as url:
        [report] = run_program("loop_on_the_page", tmp_path, "awaited", url, 80, 0)

    assert report["wrong"] == []
    assert report["killed"] > 2
