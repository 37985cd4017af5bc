"""Addresses on every backend for the tests of the adapters."""

import os
import uuid

import pytest

from support import databases, servers
from support.folders import TESTS

# Those with versions of their own have an environment of their own: `make frameworks`.
APART = {path.parent.name for path in TESTS.glob("adapters/*/requirements.txt")}
collect_ignore = sorted(APART - {os.environ.get("HOLDFAST_FRAMEWORK")})

PLACES = ("file", "memory", "directory", "postgres")


@pytest.fixture(scope="session")
def server():
    """The address of a PostgreSQL server, a private one unless one is given."""
    return servers.shared(servers.NAMES[-1])


@pytest.fixture
def schema(server):
    name = f"test_{uuid.uuid4().hex}"
    yield name
    servers.drop_schema(server, name)


@pytest.fixture(scope="session")
def emptied(server):
    with databases.emptied(server) as schema:
        yield schema


@pytest.fixture(params=PLACES)
def place(request, tmp_path):
    """The address of a new store and the options to open it with."""
    if request.param == "postgres":
        emptied = request.getfixturevalue("emptied")
        emptied.empty()
        return emptied.url, {"schema": emptied.schema, "pool": (1, 8)}
    addresses = {
        "file": str(tmp_path / "agents.db"),
        "memory": ":memory:",
        "directory": f"dir:{tmp_path}/agents",
    }
    return addresses[request.param], {}
