"""Restores that are killed, cut off from power, out of space or not alone."""

from __future__ import annotations

import pytest

from support.effort import THOROUGH
from support.programs import run_program


@pytest.mark.parametrize("how", ["kill", "cut", "full", "filled"])
def test_a_restore_that_breaks_at_any_call_is_whole_after_the_next_opening(
    tmp_path, how
):
    """SIGKILL, a power cut, and a disk that is full once or for good."""
    for state in (0, 1):
        place = tmp_path / str(state)
        place.mkdir()
        [found] = run_program("kill_restore", place, how, state)

        assert found["wrong"] == []
        assert found["calls"] > 30


def test_two_processes_that_restore_at_once_exclude_one_another(tmp_path):
    rounds = 40 if THOROUGH else 6

    [found] = run_program("rival_restores", tmp_path, rounds)

    assert found == {"whole": True, "kept": True, "wrong": 0}
