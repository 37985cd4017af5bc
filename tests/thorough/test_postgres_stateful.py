"""Store against model on PostgreSQL: whatever is done in whatever order, both agree."""

from __future__ import annotations

import os
import uuid

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

import databases
import servers
from test_stateful import Machine

# A statement takes a hundred times as long as in a file.
EXAMPLES = 40 if os.environ.get("CI") else 12


def machine(emptied, door, **special):
    """A machine whose place is emptied for every example."""

    class PostgresMachine(Machine):
        def open(self):
            if not hasattr(self, "store"):
                emptied.empty()
            super().open()

        def open_store(self, url, **options):
            place = {"schema": emptied.schema, "pool": (1, 1), **special}
            return databases.DOORS[door](emptied.url, **(options | place))

    return PostgresMachine


CASES = {
    "blocking": ("blocking", {}),
    "awaited": ("awaited", {"cache_size": 0}),
    "divided": ("blocking", {"partitions": 3, "compress": True}),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("server", servers.NAMES)
def test_store_and_model_agree(server, case):
    door, special = CASES[case]
    emptied = servers.Emptied(servers.shared(server), f"model_{uuid.uuid4().hex[:8]}")
    tried = settings(max_examples=EXAMPLES, stateful_step_count=30)
    try:
        run_state_machine_as_test(machine(emptied, door, **special), settings=tried)
    finally:
        emptied.close()
