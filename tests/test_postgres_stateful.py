"""Store against model on PostgreSQL: whatever is done in whatever order, both agree."""

from __future__ import annotations

import contextlib
import uuid

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

import databases
import servers
import test_stateful
import test_stateful_agents

# A statement takes a hundred times as long as in a file; `make thorough` tries more.
EXAMPLES = 6
MACHINES = {"threads": test_stateful.Machine, "agents": test_stateful_agents.Machine}


def on_server(machine, emptied, door, **special):
    """A machine whose place is emptied for every example."""

    class OnServer(machine):
        def open(self):
            if not hasattr(self, "store"):
                emptied.empty()
            super().open()

        def open_store(self, url, **options):
            place = {"schema": emptied.schema, "pool": (1, 1), **special}
            return databases.DOORS[door](emptied.url, **(options | place))

    return OnServer


def agree(machine, server, door, examples, **special):
    """Let a machine try its examples on a server."""
    schema = f"model_{uuid.uuid4().hex[:8]}"
    tried = settings(max_examples=examples, stateful_step_count=20)
    with contextlib.closing(servers.Emptied(servers.shared(server), schema)) as emptied:
        placed = on_server(machine, emptied, door, **special)
        run_state_machine_as_test(placed, settings=tried)


@pytest.mark.parametrize(("server", "door"), databases.CORNERS)
@pytest.mark.parametrize("machine", MACHINES)
def test_store_and_model_agree(machine, server, door):
    agree(MACHINES[machine], server, door, EXAMPLES)
