"""No row of a PostgreSQL store has anything of what was erased."""

from __future__ import annotations

import pytest

import holdfast
from holdfast.testing import raises
from support import databases, servers
from support.canaries import CANARY, KEPT, SUBJECTS, fill

# Every table of the schema, and how many of its rows have a text, also as bytes.
TABLES = "select c.relname from pg_class c where c.relnamespace = %s::regnamespace"
COUNT = "select count(*) from hf.{0} t where t::text like %s or t::text like %s"


@pytest.fixture
def place():
    with databases.place(servers.shared(servers.NAMES[-1])) as place:
        yield place


def rows_left(place):
    """How many rows of each table have a canary."""
    patterns = [f"%{CANARY}%", f"%{CANARY.encode().hex()}%"]
    tables = place.run(f"{TABLES} and c.relkind = 'r'", [place.schema])
    return {
        name: count
        for (name,) in tables
        if (count := place.run(COUNT.format(name), patterns)[0][0])
    }


@pytest.mark.parametrize("door", databases.DOORS)
def test_no_row_of_what_was_erased_is_left(door, place):
    with place.open(door) as store:
        fill(store)
        assert len(rows_left(place)) > 5
        for subject in SUBJECTS:
            store.erase(**subject)

        assert rows_left(place) == {}
        with raises(holdfast.Conflict, "thread_deleted"):
            store.thread(f"chat of {CANARY}").append(messages=[CANARY])
        assert store.thread("kept").load() == KEPT
        assert store.verify().problems == ()


def test_an_erasure_in_a_scope_reaches_the_index_of_the_whole_store(place):
    with place.open() as store:
        messages = [{"role": "user", "content": CANARY}]
        store.scope("a").conversations.create("c", owner="ann", messages=messages)
        assert len(store.search(CANARY)) == 1
        assert "search_stretch" in rows_left(place)

        store.scope("a").erase(owner="ann")

        assert rows_left(place) == {}


def test_an_erasure_is_not_part_of_a_transaction(place):
    with place.open() as store, place.connect() as connection:
        store.thread("chat").save({"n": 1})
        with raises(holdfast.Unsupported):
            store.using(connection).erase(thread="chat")
        connection.rollback()

        assert store.thread("chat").load() == {"n": 1}
