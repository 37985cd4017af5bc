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
    "_paths",
    "_plain",
    "_receding",
    "_recording",
    "_records",
    "_reference",
    "_repair",
    "_rope",
    "_searching",
    "_trimming",
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
ADAPTERS = sorted(name for name in modules() if name.startswith("adapters."))
COMMANDS = sorted(n for n in modules() if n.startswith("cli.") or n == "cli")
RENDERERS = {"cli._colours", "cli._progress"}
FRAMEWORKS = {"langchain_core", "langgraph", "openai", "ormsgpack"}


@pytest.mark.parametrize("name", BACKENDS)
def test_backends_import_the_centre_only(name):
    ours = {i for i in imports(modules()[name]) if i.split(".")[0].startswith("_")}

    assert {i.split(".")[0] for i in ours} <= {"_records", "_backend", "__future__"}


@pytest.mark.parametrize("name", PURE)
def test_the_operations_know_no_technology_no_threads_and_no_clock(name):
    forbidden = {"apsw", "asyncio", "threading", "time", "sqlite3", "backends"}

    assert not {i.split(".")[0] for i in imports(modules()[name])} & forbidden


@pytest.mark.parametrize("name", ADAPTERS)
def test_adapters_know_no_backend_and_not_one_another(name):
    adapter = ".".join(name.split(".")[:2])
    ours = {i for i in imports(modules()[name]) if i.startswith(("adapters.", "back"))}

    assert all(f"{i}.".startswith(f"{adapter}.") for i in ours)


def test_nothing_but_an_adapter_knows_its_framework():
    others = modules().keys() - {*ADAPTERS}

    found = {
        name
        for name in others
        if {i.split(".")[0] for i in imports(modules()[name])} & FRAMEWORKS
    }

    assert not found


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_know_no_backend_and_use_terminals_only_through_the_frame(name):
    found = {i.split(".")[0] for i in imports(modules()[name])}

    assert not found & {"apsw", "sqlite3", "psycopg", "backends"}
    assert not found & {"rich", "starlette"} or name in RENDERERS


def test_nothing_but_the_command_line_imports_click_and_rich():
    others = modules().keys() - {*COMMANDS, "__main__"}

    for name in others:
        found = imports(modules()[name])
        assert not {i.split(".")[0] for i in found} & {"click", "rich", "cli"}, name


def test_importing_holdfast_loads_nothing_that_is_not_needed_yet():
    unwanted = [
        "apsw",
        "asyncio",
        "zstd",
        "backports.zstd",
        "pydantic",
        "langgraph",
        "langchain_core",
        "mcp",
        "starlette",
        "uvicorn",
        "pytest",
        "click",
        "rich",
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
