"""The layers import one another in one direction, and nothing that is not needed."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast

SOURCE = Path(holdfast.__file__).parent
CENTRE = {
    "_codec",
    "_contents",
    "_dialects",
    "_looping",
    "_manifest",
    "_plain",
    "_recording",
    "_records",
    "_reference",
    "_repair",
    "_rope",
    "_searching",
    "_transcript",
    "conversations",
    "diff",
    "errors",
    "strategy",
}


def modules() -> dict[str, Path]:
    return {
        ".".join(path.relative_to(SOURCE).with_suffix("").parts): path
        for path in SOURCE.rglob("*.py")
    }


def imports(path: Path) -> set[str]:
    """The modules a file imports, ours without the package's name."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return {name.removeprefix("holdfast.") for name in found}


BACKENDS = sorted(name for name in modules() if name.startswith("backends."))
PURE = sorted(n for n in modules() if n.startswith("_operations.") or n in CENTRE)


@pytest.mark.parametrize("name", BACKENDS)
def test_backends_import_the_centre_only(name):
    ours = {i for i in imports(modules()[name]) if i.split(".")[0].startswith("_")}

    assert {i.split(".")[0] for i in ours} <= {"_records", "_backend", "__future__"}


@pytest.mark.parametrize("name", PURE)
def test_the_operations_know_no_technology_no_threads_and_no_clock(name):
    forbidden = {"apsw", "asyncio", "threading", "time", "sqlite3", "backends"}

    assert not {i.split(".")[0] for i in imports(modules()[name])} & forbidden


def test_importing_holdfast_loads_nothing_that_is_not_needed_yet():
    unwanted = [
        "apsw",
        "asyncio",
        "zstd",
        "backports.zstd",
        "pydantic",
        "pytest",
        "click",
    ]
    program = (
        "import sys, holdfast; print([m for m in sys.argv[1:] if m in sys.modules])"
    )

    found = subprocess.run(
        [sys.executable, "-c", program, *unwanted],
        check=True,
        capture_output=True,
        text=True,
    )

    assert found.stdout.strip() == "[]"


def test_nothing_in_the_package_can_run_stored_bytes():
    """No serializer that builds arbitrary objects, no eval, anywhere in the source."""
    banned = {"pickle", "marshal", "dill", "cloudpickle", "shelve", "yaml"}
    for name, path in modules().items():
        assert not {i.split(".")[0] for i in imports(path)} & banned, name
        called = {
            node.func.id
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert not called & {"eval", "exec", "compile", "__import__"}, name


def test_every_public_name_loads_from_where_the_package_says():
    program = (
        "import holdfast; names = [getattr(holdfast, n) for n in holdfast.__all__];"
        " assert set(holdfast._HOMES) == set(holdfast.__all__);"
        " assert set(dir(holdfast)) >= set(holdfast.__all__);"
        " print(len(names), holdfast.errors.NotFound is holdfast.NotFound)"
    )

    ran = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )

    assert ran.stdout.split() == [str(len(holdfast.__all__)), "True"]


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nonsense"):
        holdfast.nonsense  # noqa: B018 - the access is the test
