"""Statements on our own connections: what is sent, prepared and forgotten."""

from __future__ import annotations

import pytest
from psycopg.types.numeric import Int2

from holdfast.errors import HoldfastError
from holdfast.testing._bridge import finished
from inner.postgres import (
    MOST_PREPARED,
    BlockingConnections,
    BlockingSession,
    Pooler,
    Settings,
)
from support import databases, servers


@pytest.fixture(scope="module")
def address():
    return servers.shared(servers.NAMES[-1])


@pytest.fixture
def run(address):
    with BlockingConnections(Settings(conninfo=address), "x").connect() as connection:
        session = BlockingSession(connection, Pooler())
        yield lambda sql, **values: finished(session.rows(sql, values))


VALUES = {
    "null": (None, None),
    "truth": (True, True),
    "small": (-1, -1),
    "large": (2**63 - 1, 2**63 - 1),
    "text": ("ä€😀'%", "ä€😀'%"),
    "bytes": (b"\0\xff", b"\0\xff"),
    "numbers": ([1, -(2**63)], [1, -(2**63)]),
    "small numbers": ([Int2(-1), Int2(7)], [-1, 7]),
    "texts": (["", "ä"], ["", "ä"]),
    "byte strings": ([b"", b"\0"], [b"", b"\0"]),
    "a fraction": (0.5, 0.5),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_value_comes_back_also_when_its_statement_is_prepared(run, name):
    sent, expected = VALUES[name]

    found = [run(b"select %(value)s, %(value)s", value=sent) for _ in range(4)]

    assert found == [[(expected, expected)]] * 4


def test_no_values_are_an_array_of_any_type(run):
    types = ("bigint", "smallint", "text", "bytea")
    sql = ", ".join(f"%(value)s::{kind}[]" for kind in types).encode()

    for given in ([], [], [], []):
        assert run(b"select " + sql, value=given) == [([],) * len(types)]


def test_integers_of_all_sizes_are_of_one_statement(run):
    for n in range(1, 60):
        run(b"select %(n)s", n=2**n)

    assert run(b"select count(*) from pg_prepared_statements") == [(1,)]


def test_a_statement_that_fails_says_why_and_the_next_one_runs(run):
    for _ in range(4):
        with pytest.raises(HoldfastError, match="division by zero"):
            run(b"select 1 / %(n)s", n=0)

    assert run(b"select 1 / %(n)s", n=1) == [(1,)]


def test_what_is_prepared_has_a_limit(run):
    prepared = b"select count(*) from pg_prepared_statements"
    counts = []
    for n in range(MOST_PREPARED + 10):
        for _ in range(3):
            assert run(b"select %d, %%(n)s" % n, n=n) == [(n, n)]
        counts.append(run(prepared)[0][0])

    assert max(counts) <= MOST_PREPARED + 1  # the driver removes one with the next
    assert run(b"select 0, %(n)s", n=0) == [(0, 0)]


def test_another_encoding_in_the_address_changes_nothing(address):
    with (
        databases.place(address) as place,
        databases.Place(f"{address}?client_encoding=latin1", place.schema).open() as s,
    ):
        for n in range(4):
            s.thread("ä€").save({"note": f"{n} ä€"}, label=f"{n} ä€")

        assert [thread.id for thread in s.threads()] == ["ä€"]
        assert s.thread("ä€").head.label == "3 ä€"
