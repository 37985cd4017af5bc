"""Store against model: whatever is done in whatever order, both agree."""

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from support.thread_machine import (
    AwaitedDirectoryMachine,
    AwaitedMachine,
    CompressedMachine,
    DirectoryMachine,
    Machine,
)

MACHINES = [
    (Machine, 1),
    (AwaitedMachine, 1),
    (CompressedMachine, 1),
    (DirectoryMachine, 2),
    (AwaitedDirectoryMachine, 4),
]


@pytest.mark.parametrize(("machine", "share"), MACHINES)
def test_store_and_model_agree(machine, share):
    tried = settings(
        max_examples=settings().max_examples // share, stateful_step_count=30
    )
    run_state_machine_as_test(machine, settings=tried)
