"""Stand-ins for modules load them when they are first used, in a command line."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from holdfast._values import lazy

lazy.load_lazily()
from holdfast._engine.threads import merge
from holdfast._engine.threads import merge as again

NAME = "holdfast._engine.threads.merge"
assert NAME not in sys.modules
{use}
assert NAME in sys.modules
"""
OPENED = """
import sys, holdfast
with holdfast.open({path!r}) as store:
    loaded = set(sys.modules)
    thread = store.thread("t")
    thread.append(messages=["a"])
    thread.fork("u").append(messages=[1])
    thread.diff("@", "@")
    thread.merge(store.thread("u"), dry_run=True)
    store.conversations.create("c")
    store.conversations.recorder("c")
    store.search("a")
    store.stats()
print([name for name in sys.modules if name not in loaded and "holdfast." in name])
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


def test_a_program_has_loaded_all_that_it_may_use_when_it_has_opened_a_store(tmp_path):
    """A thread that loads a module while another one forks would stop the child."""
    program = OPENED.format(path=str(tmp_path / "agents.db"))

    ran = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )

    assert ran.stdout.strip() == "[]"
