"""A private PostgreSQL server for a run, from the newest binaries on the machine."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent / "tests"
# What a server does unless it is told otherwise; the tests' servers do less.
SERIOUS = {"fsync": "on", "full_page_writes": "on", "autovacuum": "on"}


@contextlib.contextmanager
def private_server() -> Iterator[str]:
    """The address of a server that is gone afterwards."""
    sys.path.insert(0, str(TESTS))  # the tests are no package
    try:
        servers = import_module("support.servers")
    finally:
        sys.path.remove(str(TESTS))
    with servers.server(servers.NEWEST, SERIOUS) as server:
        yield server.url
