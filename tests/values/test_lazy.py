"""Stand-ins for modules load them when they are first used, in a command line."""

from __future__ import annotations

import subprocess
import sys

import pytest

import holdfast

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


PATTERN = """
import re
from holdfast._values import lazy

lazy.load_lazily()
compiled, real = [], re.compile
re.compile = lambda *given: compiled.append(given) or real(*given)
letter = lazy.lazy_pattern("a", re.IGNORECASE)
assert not compiled
assert letter.sub("b", "xA") == "xb" and letter.sub("b", "a") == "b"
assert letter.pattern == "a" and letter.fullmatch("b") is None
assert compiled and {*compiled} == {("a", re.IGNORECASE)}
"""
LOOKS = """
import sys
before = {{*sys.modules}}  # what counts branches has loaded some
from holdfast._values import lazy

lazy.load_lazily()
from holdfast.cli import main

assert main(["log", "t", "--store", {path!r}]) == 0
print(*sys.modules.keys() - before)
"""


def test_a_pattern_is_compiled_by_its_first_use():
    subprocess.run([sys.executable, "-c", PATTERN], check=True)


def test_a_log_loads_neither_what_saves_nor_translations_nor_digests(tmp_path):
    path = str(tmp_path / "agents.db")
    with holdfast.open(path) as store:
        store.thread("t").save({"messages": ["a"]})

    ran = subprocess.run(
        [sys.executable, "-c", LOOKS.format(path=path)],
        check=True,
        capture_output=True,
        text=True,
    )

    others = {
        "hashlib",
        "locale",
        "holdfast._api.declared",
        "holdfast._engine.packing.joining",
        "holdfast._engine.threads.save",
        "holdfast.cli._followed_log",
    }
    assert not others & {*ran.stdout.split()}


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
