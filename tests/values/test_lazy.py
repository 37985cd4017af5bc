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


PUT_OFF = (
    LOOKS.rpartition("print")[0]
    + """
stand_ins = [n for n, m in sys.modules.items() if type(m) is lazy.LazyModule]
print(*stand_ins, *before)
"""
)
USED = (
    LOOKS.rpartition("print")[0]
    + """
import copy, dataclasses, gettext, inspect, json, platform, textwrap, typing, uuid
from inspect import cleandoc
import click, msgspec, orjson, typing_extensions
from click.core import inspect as theirs
from click.core import ngettext

@dataclasses.dataclass
class Point:
    x: int

class Declared(typing_extensions.TypedDict):
    x: typing_extensions.Required[typing_extensions.Annotated[int, msgspec.Meta(ge=0)]]
    y: typing_extensions.NotRequired[int]

assert Point.__doc__ == "Point(x: int)"
assert inspect.signature(Point) == theirs.signature(Point)
assert theirs.cleandoc is cleandoc is sys.modules["inspect"].cleandoc
assert textwrap.dedent("  a") == "a"
assert copy.copy([1]) == dataclasses.asdict(Point([1]))["x"] == [1]

def refusal(package):
    try:
        package.loads("[1,\\nx]")
    except package.JSONDecodeError as error:
        assert isinstance(error, ValueError)
        assert str(error).endswith(": line 2 column 1 (char 4)")
        return error.doc, error.pos, error.lineno, error.colno

assert refusal(orjson) == refusal(json) != None
assert platform.system() == platform.uname().system
assert uuid.uuid1().version == 1
assert ngettext("a", "b", 2) == gettext.ngettext("a", "b", 2) == "b"
assert msgspec.inspect.type_info(int) == msgspec.inspect.IntType()
assert msgspec.json.schema(Declared)["$ref"]
assert msgspec.convert({{"x": 1}}, Declared) == {{"x": 1}}
try:
    msgspec.convert({{"y": 1}}, Declared)
except msgspec.ValidationError:
    print("as usual")
"""
)
THREADS = """
import sys, threading
from holdfast._values import lazy

lazy.load_lazily()
lazy.put_off("colorsys")  # what counts branches has not loaded it
import colorsys
assert type(colorsys) is lazy.LazyModule

found, barrier = [], threading.Barrier(8)

def use():
    barrier.wait()
    found.append((colorsys.rgb_to_hls, sys.modules["colorsys"]))

threads = [threading.Thread(target=use) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(len({function for function, _ in found}), len({id(m) for _, m in found}))
"""
LOADED = """
import colorsys, sys
from holdfast._values import lazy

lazy.put_off("quopri")  # not a command line
before = sys.modules["colorsys"]
lazy.load_lazily()
lazy.put_off("colorsys")
print(sys.modules["colorsys"] is before, sys.modules.get("quopri"))
"""


def test_a_pattern_is_compiled_by_its_first_use():
    subprocess.run([sys.executable, "-c", PATTERN], check=True)


@pytest.fixture
def path(tmp_path):
    path = str(tmp_path / "agents.db")
    with holdfast.open(path) as store:
        store.thread("t").save({"messages": ["a"]})
    return path


def printed(program):
    ran = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    return ran.stdout


def test_a_log_loads_neither_what_saves_nor_translations_nor_digests(path):
    loaded = printed(LOOKS.format(path=path)).split()

    others = {
        "ast",
        "hashlib",
        "json",
        "locale",
        "mmap",
        "typing_extensions",
        "unicodedata",
        "holdfast._api.agents",
        "holdfast._api.conversations",
        "holdfast._api.declared",
        "holdfast._api.documents",
        "holdfast._engine.packing.forms",
        "holdfast._engine.packing.joining",
        "holdfast._engine.threads.save",
        "holdfast._port.backend",
        "holdfast._port.family_queries",
        "holdfast._port.index_queries",
        "holdfast._port.plans",
        "holdfast.backends.sqlite._background",
        "holdfast.cli._followed_log",
    }
    assert not others & {*loaded}


def test_a_log_loads_no_module_that_other_packages_import_and_it_does_not_use(path):
    put_off = printed(PUT_OFF.format(path=path)).splitlines()[-1].split()

    modules = {"copy", "gettext", "inspect", "textwrap"}
    modules |= {"msgspec.inspect", "msgspec.toml", "msgspec.yaml"}
    assert modules <= {*put_off}


def test_what_was_put_off_works_as_usual_for_every_package(path):
    assert printed(USED.format(path=path)).splitlines()[-1] == "as usual"


def test_a_module_that_was_put_off_is_loaded_once_by_many_threads():
    assert printed(THREADS) == "1 1\n"


def test_a_module_that_is_loaded_already_is_not_put_off():
    assert printed(LOADED) == "True None\n"


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
