"""Restores of files on real file systems whose power is cut at every call."""

import pytest

from holdfast.testing.trials.file_systems import FILE_SYSTEMS, obstacle
from support.programs import run_program

pytestmark = pytest.mark.parametrize("kind", FILE_SYSTEMS)


@pytest.fixture(autouse=True)
def possible(kind):
    if why := obstacle(kind):
        pytest.skip(why)


@pytest.mark.parametrize("state", [0, 1])
def test_a_restore_that_is_cut_anywhere_is_whole_after_the_next_opening(
    tmp_path, kind, state
):
    [found] = run_program("cut_restore", tmp_path, kind, state, 1)

    assert found["wrong"] == []
    assert found["cuts"] > 60


def test_a_restore_that_does_not_wait_for_the_disk_is_noticed(tmp_path, kind):
    [found] = run_program("cut_restore", tmp_path, kind, 0, 0)

    assert found["wrong"]
