"""Types are known to msgspec before two threads can be the first to use them."""

import pytest

from support.programs import run_program

pytestmark = [pytest.mark.processes, pytest.mark.smoke]


def test_no_type_of_ours_is_first_read_when_it_is_used(tmp_path):
    assert run_program("first_uses", tmp_path) == []
