"""Agents, conversations and checkpoints against plain copies of what was saved."""

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from support.agent_machine import DirectoryMachine, Machine, MemoryMachine


@pytest.mark.parametrize(
    ("machine", "share"), [(Machine, 1), (MemoryMachine, 1), (DirectoryMachine, 2)]
)
def test_agents_and_copies_agree(machine, share):
    examples = max(15, settings().max_examples // 4) // share
    run_state_machine_as_test(
        machine, settings=settings(max_examples=examples, stateful_step_count=30)
    )
