"""The conformance suite on PostgreSQL: every server that is there, and both doors."""

from __future__ import annotations

import psycopg
import pytest

import holdfast
from conformance import ConformanceTests, SecondApiTests
from holdfast.testing import blocking
from inner.postgres import statements
from support import citus, databases, servers

# Every server that is there and both doors are tried, but not each server with each
# door: it would take as long again and has never found anything more.
OLDEST, NEWEST = servers.NAMES[0], servers.NAMES[-1]


@pytest.fixture(scope="session")
def on_oldest():
    with databases.emptied(servers.shared(OLDEST)) as schema:
        yield schema


@pytest.fixture(scope="session")
def on_newest():
    with databases.emptied(servers.shared(NEWEST)) as schema:
        yield schema


class TestPostgres(SecondApiTests):
    @pytest.fixture(autouse=True)
    def place(self, on_oldest):
        on_oldest.empty()
        self.url, self.schema = on_oldest.url, on_oldest.schema

    def open_store(self, **options):
        special = {"schema": self.schema, "pool": (1, 4)}
        return holdfast.open(self.url, **(special | options))


class TestPostgresAsync(ConformanceTests):
    @pytest.fixture(autouse=True)
    def place(self, on_newest):
        on_newest.empty()
        self.url, self.schema = on_newest.url, on_newest.schema

    def open_store(self, **options):
        special = {"schema": self.schema, "pool": (1, 4)}
        return blocking(holdfast.open_async(self.url, **(special | options)))


# --- what a server understands --------------------------------------------------------

# The first makes tables. Citus refuses the other; its saves are then sent one by one.
NOT_ASKED = {"distribute", "save_each"}


def test_the_server_plans_every_statement(on_newest):
    on_newest.empty()
    with holdfast.open(on_newest.url, schema=on_newest.schema) as store:
        store.thread("a").save({"messages": [{"role": "user", "content": "hello"}]})
        store.search("hello")  # makes the tables for it
    files = ["shared.sql", "queries.sql", "search.sql"]
    if citus.is_there(on_newest.url):
        files.append("citus.sql")
    texts = {n: q for f in files for n, q in statements(on_newest.schema, f).items()}

    with psycopg.connect(on_newest.url, prepare_threshold=None) as connection:
        problems = {
            name: citus.problem(connection, sql.decode())
            for name, sql in texts.items()
            if name not in NOT_ASKED and not sql.startswith((b"create", b"do"))
        }

    assert {name: why for name, why in problems.items() if why} == {}
