"""Ids: what makes them unique."""

import os
import subprocess
import sys

import pytest

from holdfast.operations.values import uuid7

IDS_OF_A_CHILD = """
import os
from holdfast.operations.values import uuid7

uuid7()  # from here on, random bytes may be in stock
child = os.fork()
os.write(1, "".join(f"{uuid7()}\\n" for _ in range(20)).encode())
if child == 0:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


def test_ids_are_unique_also_beyond_one_portion_of_random_bytes():
    ids = [uuid7() for _ in range(2000)]

    assert len({_random_part(id_) for id_ in ids}) == len(ids)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_does_not_give_the_ids_of_its_parent():
    found = subprocess.run(
        [sys.executable, "-c", IDS_OF_A_CHILD],
        check=True,
        capture_output=True,
        text=True,
    )
    ids = found.stdout.split()

    assert len(ids) == 40
    assert len({_random_part(id_) for id_ in ids}) == 40


def _random_part(id_: str) -> str:
    """What stands behind the time and the version."""
    return id_[15:]
