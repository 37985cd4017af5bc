"""A program that has reached its limit of open files loses nothing and is told why."""

from __future__ import annotations

import sys

import pytest

from support.programs import run_program

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")

# "cli" is a command that ended with a status of ours.
LIMITS = {"io_error", "cannot_open", "cli"}


@pytest.mark.parametrize("kind", ["file", "dir"])
def test_every_call_says_so_and_damages_nothing(kind, tmp_path):
    found = run_program("few_descriptors", kind, tmp_path)

    assert {f["call"]: e for f in found for e in f["errors"] if e not in LIMITS} == {}
    assert [f["call"] for f in found if not f["is_sound"]] == []
    assert len([f for f in found if f["errors"]]) > len(found) / 2
