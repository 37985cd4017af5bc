"""The layers import one another in one direction, and nothing that is not needed."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path

import pytest

import holdfast

SOURCE = Path(holdfast.__file__).parent
# From the centre outwards. A module imports modules of its own folder, and of folders
# that stand before it; folders in one row do not know one another.
LAYERS = (
    {"_values"},
    {"_messages"},
    {"_port"},
    {"archive"},
    {"_engine", "_engine.packing"},
    {"_engine.files"},
    {"_engine.threads", "_engine.scopes"},
    {"_engine.effects"},
    {"_engine.records"},
    {"_engine.recorder", "_engine.search"},
    {"_engine.upkeep"},
    {"_api"},
    {
        "backends",
        "importers",
        "keys",
        "operations",
        "telemetry",
        "testing.conformance",
        "views",
        "workspace",
    },
    {"testing", "testing.faults", "tools", "adapters", "_http"},
    {"mcp", "viewer", "testing.trials"},
    {"cli"},
)
# The public modules beside the folders, by the folder whose layer they belong to.
PUBLIC = {
    "errors": "_values",
    "diff": "_values",
    "retention": "_values",
    "agents": "_messages",
    "conversations": "_messages",
    "documents": "_messages",
    "effects": "_messages",
    "messages": "_messages",
    "strategy": "_messages",
    "streams": "_messages",
    "recorder": "_api",
    "__main__": "cli",
    "": "_values",  # the package itself, for its version; its names are loaded later
}
# The one place that knows which leaves there are, by name.
PLUGINS = "_api.plugins"


def modules() -> dict[str, Path]:
    """Every module of ours without the package's name, packages by their own."""
    found = {}
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(p for p in parts if p != "__init__")] = path
    return found


MODULES = modules()


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@functools.cache
def imported(path: Path) -> set[str]:
    """What a file imports anywhere, also lazily and by a name in a string."""
    found: set[str] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            ours = {w for w in whole if w.removeprefix("holdfast.") in MODULES}
            found.update(ours)
            if ours != whole:
                found.add(node.module)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value.partition(":")[0]
            if name.removeprefix("holdfast.") in MODULES and "." in name:
                found.add(name)
    return found


def imports(path: Path) -> set[str]:
    """The modules a file imports, ours without the package's name."""
    return {name.removeprefix("holdfast").removeprefix(".") for name in imported(path)}


def folder(module: str) -> str:
    """The folder whose layer a module belongs to."""
    if module in PUBLIC:
        return PUBLIC[module]
    parts = module.split(".")
    if parts[0] in {"_engine", "testing"}:
        package = len(parts) > 2 or ".".join(parts) in {*chain(*LAYERS)}
        return ".".join(parts[:2]) if package else parts[0]
    return parts[0]


def rank(module: str) -> int:
    [found] = [n for n, row in enumerate(LAYERS) if folder(module) in row]
    return found


def test_every_folder_has_a_layer_and_every_layer_a_folder():
    folders = {folder(module) for module in MODULES}

    assert folders == {*chain(*LAYERS)}


def ours(name: str) -> set[str]:
    """The modules of ours that a module imports."""
    return {i for i in imports(MODULES[name]) if i in MODULES}


def offences(
    names: Iterable[str], wrong: Callable[[str], set[str]]
) -> dict[str, set[str]]:
    """What is wrong with modules, by their names."""
    return {name: found for name in names if (found := wrong(name))}


def test_a_module_imports_only_its_own_folder_and_those_before_it():
    def outward(name):
        rest = {i for i in ours(name) if folder(i) != folder(name)}
        return {i for i in rest if rank(i) >= rank(name)}

    assert offences(MODULES.keys() - {"", PLUGINS}, outward) == {}


BACKENDS = sorted(name for name in MODULES if name.startswith("backends."))
PURE = sorted(n for n in MODULES if rank(n) < rank("_api") and n != "_values.clock")


def roots(name: str) -> set[str]:
    """The packages of which a module imports something."""
    return {i.split(".")[0] for i in imports(MODULES[name])}


def test_a_backend_knows_the_port_and_its_values_only():
    known = {"_values", "_port", "backends"}

    assert offences(BACKENDS, lambda name: {*map(folder, ours(name))} - known) == {}


def test_the_engine_knows_no_technology_no_threads_and_no_clock():
    forbidden = {"apsw", "asyncio", "threading", "time", "sqlite3", "psycopg"}

    assert offences(PURE, lambda name: roots(name) & forbidden) == {}


ADAPTERS = sorted(name for name in MODULES if name.startswith("adapters."))
COMMANDS = sorted(n for n in MODULES if n.startswith("cli.") or n == "cli")
RENDERERS = {"cli.terminal.colours", "cli.terminal.progress"}
FRAMEWORKS = {
    "a2a",
    "agent_framework",
    "agent_framework_ag_ui",
    "claude_agent_sdk",
    "deepagents",
    "google",
    "langchain_core",
    "langgraph",
    "openai",
    "ormsgpack",
    "pydantic_ai",
    "strands",
}


def foreign(adapter: str, names: set[str]) -> set[str]:
    """Those modules that are not of the adapter to which a module belongs."""
    own = ".".join(adapter.split(".")[:2])
    return {name for name in names if not f"{name}.".startswith(f"{own}.")}


def test_adapters_know_no_backend_and_not_one_another():
    """They may know the port, which `holdfast.backends` offers."""

    def known(name):
        found = foreign(name, imports(MODULES[name])) - {"backends"}
        return {i for i in found if i.startswith(("adapters.", "back"))}

    assert offences(ADAPTERS, known) == {}


def test_adapters_import_nothing_private_but_their_own():
    """What our adapters need, the adapters of others can have."""

    def private(name):
        others = foreign(name, ours(name))
        return {i for i in others if any(p.startswith("_") for p in i.split("."))}

    assert offences(ADAPTERS, private) == {}


def test_nothing_but_an_adapter_knows_its_framework():
    others = MODULES.keys() - {*ADAPTERS}

    found = {
        name
        for name in others
        if {i.split(".")[0] for i in imports(MODULES[name])} & FRAMEWORKS
    }

    assert not found


def test_commands_know_no_backend_and_use_terminals_only_through_the_frame():
    databases = {"apsw", "sqlite3", "psycopg", "backends"}
    terminals = {"rich", "starlette"}

    assert offences(COMMANDS, lambda name: roots(name) & databases) == {}
    assert offences({*COMMANDS} - RENDERERS, lambda name: roots(name) & terminals) == {}


def test_nothing_but_the_command_line_imports_click_and_rich():
    others = MODULES.keys() - {*COMMANDS, "__main__"}

    for name in others:
        found = imports(MODULES[name])
        assert not {i.split(".")[0] for i in found} & {"click", "rich", "cli"}, name


def test_importing_holdfast_loads_nothing_that_is_not_needed_yet():
    unwanted = [
        "apsw",
        "asyncio",
        "zstandard",
        "pydantic",
        "langgraph",
        "langchain_core",
        "mcp",
        "starlette",
        "uvicorn",
        "pytest",
        "click",
        "rich",
        "opentelemetry",
        "cryptography",
        "pathspec",
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
    for name, path in MODULES.items():
        assert not {i.split(".")[0] for i in imports(path)} & banned, name
        called = {
            node.func.id
            for node in ast.walk(parsed(path))
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
