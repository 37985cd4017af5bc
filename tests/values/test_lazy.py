"""Stand-ins for modules load them when they are first used."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from holdfast._engine.threads import merge
from holdfast._engine.threads import merge as again

NAME = "holdfast._engine.threads.merge"
assert NAME not in sys.modules
{use}
assert NAME in sys.modules
"""
USES = {
    "read": "assert merge.merge is sys.modules[NAME].merge",
    "set": "merge.x = 1; assert sys.modules[NAME].x == again.x == 1",
    "delete": "again.x = 1; del merge.x; assert not hasattr(again, 'x')",
    "change later": "merge.merge; sys.modules[NAME].merge = 2; assert merge.merge == 2",
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_module_is_loaded_by_its_first_use_and_then_is_what_the_name_means(use):
    subprocess.run([sys.executable, "-c", PROGRAM.format(use=use)], check=True)
