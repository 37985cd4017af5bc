"""A command loads what it uses; a program has loaded all when a store is open."""

from __future__ import annotations

import subprocess
import sys

import pytest

import holdfast
from holdfast.operations.threads import removal, save
from inner.engine import query

# Modules that are loaded have the type of modules; those put off have one of their own.
LOOKS = """
import sys, types
from holdfast import __main__ as program

sys.meta_path.insert(0, program.Deferring)
from holdfast.cli import main

assert main(["log", "t", "--store", sys.argv[1]]) == 0
ours = [name for name in sys.modules if name.startswith("holdfast.")]
print(*(name for name in ours if type(sys.modules[name]) is not types.ModuleType))
"""
OPENED = """
import sys, holdfast
with holdfast.open(sys.argv[1]) as store:
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


@pytest.fixture
def path(tmp_path):
    path = str(tmp_path / "agents.db")
    with holdfast.open(path) as store:
        store.thread("t").save({"messages": ["a"]})
    return path


def last_line(program, path):
    ran = subprocess.run(
        [sys.executable, "-c", program, path],
        check=True,
        capture_output=True,
        text=True,
    )
    return ran.stdout.splitlines()[-1]


def test_a_log_loads_nothing_that_saves_removes_or_searches(path):
    put_off = last_line(LOOKS, path).split()

    assert {query.__name__, removal.__name__, save.__name__} <= {*put_off}


def test_a_program_has_loaded_all_that_it_may_use_when_it_has_opened_a_store(tmp_path):
    """A thread that loads a module while another one forks would stop the child."""
    assert last_line(OPENED, str(tmp_path / "agents.db")) == "[]"
