"""The conformance suite on PostgreSQL: every server that is there, both doors."""

from __future__ import annotations

import contextlib
import uuid

import pytest

import holdfast
import servers
from holdfast.testing import StoreTests, blocking


@pytest.fixture(scope="session", params=servers.NAMES)
def address(request):
    """The address of a server, an own one unless one is given."""
    return servers.shared(request.param)


@pytest.fixture(scope="session")
def schema(address):
    with contextlib.closing(
        servers.Emptied(address, f"test_{uuid.uuid4().hex}")
    ) as schema:
        yield schema


class TestPostgres(StoreTests):
    @pytest.fixture(autouse=True)
    def place(self, schema):
        schema.empty()
        self.url, self.schema = schema.url, schema.schema

    def open_store(self, **options):
        special = {"schema": self.schema, "pool": (1, 4)}
        return holdfast.open(self.url, **(special | options))


class TestPostgresAwaited(TestPostgres):
    def open_store(self, **options):
        special = {"schema": self.schema, "pool": (1, 4)}
        return blocking(holdfast.open_async(self.url, **(special | options)))
