"""Tests, benchmarks and the demo use public names, and inner names from one place.

The public names are those of tests/frozen/api.txt. All others may move at any time, and
only `inner` imports them: one package for the tests, and one for the benchmarks.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from support.folders import ROOT, TESTS

FILES = {
    path: path.read_text()
    for folder in ("tests", "benchmarks", "demo", "docs")
    for path in sorted((ROOT / folder).rglob("*.py"))
}
INNER = [path for path in FILES if path.parent.name == "inner"]
OTHERS = [path for path in FILES if path not in INNER]
SOURCE = Path(holdfast.__file__).parent
MODULES = {
    ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)
    for path in SOURCE.rglob("*.py")
}
MODULES |= {module.removesuffix(".__init__") for module in MODULES}
# Below the name of a module are its names; what belongs to one of these is indented.
SECTION = re.compile(r"^# (holdfast\S*) .*\n((?:[^#\n].*\n)*)", re.MULTILINE)
OFFER = re.compile(r"^(?:class |async )?(\w+)", re.MULTILINE)
API = (TESTS / "frozen" / "api.txt").read_text()
PUBLIC = {module: {*OFFER.findall(names)} for module, names in SECTION.findall(API)}
DOTTED = re.compile(r"\bholdfast(?:\.\w+)+")
# Parsing all files takes three seconds, and leaves out programs in strings.
IMPORT = re.compile(r"^ *from ([\w.]+) import (?:\(([^)]*)\)|(.*))", re.MULTILINE)
# Their inner modules are not imported from one place yet.
TRIALS = ("holdfast.testing.", "holdfast.selftest.", "holdfast.faults.")


def module_of(name: str) -> str:
    """The module of ours with which a dotted name begins."""
    while name not in MODULES:
        name = name.rpartition(".")[0]
    return name


def is_public(module: str) -> bool:
    """True also for a package of public modules, and for the program."""
    if f"{module}.".startswith(TRIALS) or module == "holdfast.__main__":
        return True
    return any(f"{public}.".startswith(f"{module}.") for public in PUBLIC)


def imported(text: str) -> Iterator[tuple[str, str]]:
    """Modules, and the names that are imported from them."""
    for module, some, one in IMPORT.findall(text):
        names = re.sub("#.*", "", some or one).split(",")
        yield from ((module, name.split()[0]) for name in names if name.strip())


def inner_names(text: str) -> set[str]:
    """Modules that are named anywhere, also in strings, and names of public ones."""
    modules = {module_of(name) for name in DOTTED.findall(text)}
    names = {
        f"{module}.{name}"
        for module, name in imported(text)
        if module in PUBLIC
        and not f"{module}.".startswith(TRIALS)
        and name not in {*PUBLIC[module], "__version__"}
    }
    return {name for name in modules | names if not is_public(name)}


def test_inner_names_are_imported_in_one_place_only():
    found = {str(path): inner_names(FILES[path]) for path in OTHERS}

    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import {}._port", "._port"),
        ("from {} import _port", "._port"),
        ("from {}.agents import KINDS", ".agents.KINDS"),
        ("patch('{}._engine.search.index.PAGE', 1)", "._engine.search.index"),
        ("'{}.views.%s'", ".views"),
        ("run('-m', '{}.cli._reference')", ".cli._reference"),
        ("{}._port.Write", "._port"),
    ],
)
def test_every_way_to_name_an_inner_module_is_found(text, found):
    assert inner_names(text.format("holdfast")) == {f"holdfast{found}"}


def test_the_one_place_does_nothing_but_import():
    for path in INNER:
        _, *statements = ast.parse(FILES[path]).body

        assert {type(statement) for statement in statements} <= {ast.ImportFrom}, path


def test_every_inner_name_is_used():
    used = {pair for path in OTHERS for pair in imported(FILES[path])}

    for path in INNER:
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for node in ast.walk(ast.parse(FILES[path])):
            if isinstance(node, ast.alias):
                name = node.asname or node.name
                assert (module.removeprefix("tests."), name) in used, name
