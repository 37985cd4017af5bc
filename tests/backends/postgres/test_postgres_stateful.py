"""Store against model on PostgreSQL: whatever is done in whatever order, both agree."""

from __future__ import annotations

import pytest

from support import databases
from support.postgres_machines import MACHINES, agree

# A statement takes a hundred times as long as in a file; `make thorough` tries more.
EXAMPLES = 6


@pytest.mark.parametrize(("server", "door"), databases.CORNERS)
@pytest.mark.parametrize("machine", MACHINES)
def test_store_and_model_agree(machine, server, door):
    agree(MACHINES[machine], server, door, EXAMPLES)
