"""A workflow whose process is killed goes on in a new one."""

import json

import pytest

import holdfast
from support.programs import run_program


def test_executors_that_ended_before_the_kill_do_not_run_again(place):
    address, options = place
    if address == ":memory:":
        pytest.skip("nothing is left of it")

    ran = run_program("kill_workflow", address, json.dumps(options), 3)

    assert ran == [["a", "b"], ["b"], ["b"], ["b", "c", [4]]]
    with holdfast.open(address, **options) as store:
        [run] = store.threads()
        assert store.thread(run.id).step == store.stats().checkpoints
        assert store.verify().ok
