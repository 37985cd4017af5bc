"""Stores of every kind for the tests, and how hard Hypothesis tries."""

import gc
import os
import re
import signal
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

import holdfast
from holdfast.testing import FakeClock
from support.effort import QUICK, THOROUGH
from support.server_logs import LOGS
from support.stores import (
    open_awaited,
    open_compressed,
    open_compressed_awaited,
    open_directory,
    open_directory_awaited,
    open_file,
    open_memory,
)

# A shell that starts the tests in the background has them, and every program that they
# start, ignore interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)


# Where workspaces keep what is this user's: not in the home of who runs the tests.
STATE = f"holdfast-tests-{getattr(os, 'getuid', int)()}"
os.environ["XDG_STATE_HOME"] = os.path.join(tempfile.gettempdir(), STATE)

# Nothing that is imported or collected is ever garbage, so nothing looks for it there.
gc.disable()


POSTGRES = Path(__file__).parent / "backends" / "postgres"
ON_A_SERVER = re.compile("postgres|pg1[0-9]")


def pytest_collection_modifyitems(items):
    """Mark what needs a server or a browser; what starts processes says so itself."""
    for item in items:
        given = item.callspec.id if hasattr(item, "callspec") else ""
        if POSTGRES in item.path.parents or ON_A_SERVER.search(given):
            item.add_marker("servers")
        if "browser" in item.fixturenames:
            item.add_marker("browser")


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


# A failing example is printed with the @reproduce_failure line that repeats it.
PHASES = [Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink]
settings.register_profile(
    "usual",
    max_examples=20,
    deadline=None,
    print_blob=True,
    phases=PHASES,
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow],
)
USUAL = settings.get_profile("usual")
settings.register_profile("thorough", USUAL, max_examples=1000)
settings.register_profile("quick", USUAL, max_examples=10)
settings.load_profile("quick" if QUICK else "thorough" if THOROUGH else "usual")

# With every test elsewhere that starts a server or a program, this is what `make quick`
# leaves out: frameworks, servers, processes, terminals, rivals that race, disks that
# fail at every step, and the conformance suite on more than a file and memory.
LEFT_OUT = [
    "adapters",
    "backends/postgres",
    "backends/sqlite/test_bitrot.py",
    "backends/sqlite/test_concurrency.py",
    "backends/test_crash.py",
    "benchmarks",
    "cli/test_cli_golden.py",
    "cli/test_cli_process.py",
    "conformance/test_encrypted.py",
    "conformance/test_other_stores.py",
    "conformance/test_scoped.py",
    "engine/test_concurrency_agents.py",
    "mcp",
    "keys",
    "messages/test_for_models.py",
    "port/test_writing_a_backend.py",
    "project/test_demo.py",
    "project/test_docs.py",
    "project/test_package.py",
    "viewer",
]
collect_ignore = LEFT_OUT if QUICK else []
HOME = os.getcwd()


@pytest.fixture(autouse=True)
def no_deadlock():
    """No test makes a server end one of two that wait for each other."""
    yield
    assert LOGS.deadlocks() == []


@pytest.fixture(autouse=True)
def back_home():
    """Leave the folder of a test: it is removed if the test passed."""
    yield
    os.chdir(HOME)


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "store.db")


STORES = {
    "file": open_file,
    "directory-awaited": open_directory_awaited,
}
if THOROUGH:
    STORES |= {
        "awaited": open_awaited,
        "compressed": open_compressed,
        "compressed-awaited": open_compressed_awaited,
        "directory": open_directory,
        "memory": open_memory,
    }


@pytest.fixture(params=STORES.values(), ids=STORES)
def store(request, path, clock):
    """A new store on a file and in a folder, with a clock that stands still."""
    with request.param(path, clock=clock, durability="normal") as store:
        yield store


@pytest.fixture
def memory(clock):
    """A store for tests to which neither the API nor the file matters."""
    with holdfast.open(":memory:", clock=clock) as store:
        yield store
