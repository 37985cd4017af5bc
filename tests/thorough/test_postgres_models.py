"""Store against model on every PostgreSQL, through both doors, whole and divided."""

from __future__ import annotations

import os

import pytest

from support import servers
from support.postgres_machines import MACHINES, agree

EXAMPLES = 40 if os.environ.get("CI") else 12
CASES = {
    "blocking": ("blocking", {}),
    "awaited": ("awaited", {"cache_size": 0}),
    "divided": ("blocking", {"partitions": 3, "compress": True}),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("server", servers.NAMES)
@pytest.mark.parametrize("machine", MACHINES)
def test_store_and_model_agree(machine, server, case):
    door, special = CASES[case]

    agree(MACHINES[machine], server, door, EXAMPLES, **special)
