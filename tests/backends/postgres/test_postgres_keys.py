"""Encrypted stores on PostgreSQL, by both APIs."""

from __future__ import annotations

import pytest

import holdfast
from holdfast import Corrupt, Retention, Unsupported, testing
from holdfast.testing import StoreTests, blocking, raises
from inner.keys import OVERHEAD
from support import databases, servers
from support.effort import THOROUGH

KEY, OTHER = bytes(range(32)), bytes(32)
CANARY = "canary"


@pytest.fixture(scope="session")
def emptied():
    with databases.emptied(servers.shared(servers.NAMES[-1])) as schema:
        yield schema


class StoredTests(
    testing.SaveTests,
    testing.AppendTests,
    testing.LoadTests,
    testing.HistoryTests,
    testing.ForkTests,
    testing.MarkTests,
    testing.JournalTests,
    testing.TransactionTests,
    testing.ListingTests,
    testing.PruneTests,
    testing.ErasureTests,
):
    """The rules about what is stored and looked up under keys."""


class TestEncrypted(StoreTests if THOROUGH else StoredTests):
    """What a backend can break; the rest of the rules is tried over a file."""

    segment_overhead = OVERHEAD

    @pytest.fixture(autouse=True)
    def place(self, emptied):
        emptied.empty()
        self.url, self.schema = emptied.url, emptied.schema

    def open_store(self, **options):
        special = {"schema": self.schema, "pool": (1, 4), "key": KEY}
        return blocking(holdfast.open_async(self.url, **(special | options)))

    def test_a_thread_can_be_described_later(self):
        pytest.skip("it changes an owner")

    def test_owner_and_metadata_of_the_threads_come_back(self):
        pytest.skip("it changes an owner")


@pytest.fixture
def place():
    with databases.place(servers.shared(servers.NAMES[0])) as place:
        yield place


@pytest.mark.parametrize("door", databases.DOORS)
def test_keys_are_checked_and_rotated(door, place):
    with place.open(door, key=KEY) as store:
        store.thread("chat", owner="ann").append(messages=["x" * 999])
    for key, code in ((OTHER, "wrong_key"), (None, "key_needed")):
        with raises(Unsupported, code=code):
            place.open(door, key=key)

    with place.open(door, key=KEY) as store:
        store.rotate_key(OTHER)

    with place.open(door, key=OTHER) as store:
        assert store.thread("chat").load() == {"messages": ["x" * 999]}
        assert store.verify(seal=store.seal()).ok
    with raises(Unsupported, code="wrong_key"):
        place.open(door, key=KEY)


def test_a_key_that_was_made_in_a_callers_transaction_outlives_it(place):
    with place.open(key=KEY) as store:
        with place.connect() as connection:
            store.using(connection).thread("a", owner="ann").save({"n": 1})
            connection.rollback()
        store.thread("b", owner="ann").save({"n": 2})

    with place.open(key=KEY) as store:
        assert store.thread("b").load() == {"n": 2}


def test_no_canary_is_in_any_row(place):
    with place.open(key=KEY) as store:
        chat = store.thread(f"{CANARY} name", owner=CANARY, agent=CANARY, kind=CANARY)
        chat.extend({CANARY: [CANARY * 99]}, metadata={CANARY: CANARY})
        chat.label(CANARY)
        chat.tag(CANARY)
        chat.record(CANARY, CANARY)
        chat.fork(f"{CANARY} fork")
    tables = place.run(
        "select table_name from information_schema.tables where table_schema = %s"
        " and table_type = 'BASE TABLE'",
        (place.schema,),
    )

    found = {
        name: place.run(
            f"select t::text from hf.{name} t where t::text like %s or"
            " strpos(t::text, encode(%s, 'hex')) > 0",
            (f"%{CANARY}%", CANARY.encode()),
        )
        for (name,) in tables
    }

    assert {name: rows for name, rows in found.items() if rows} == {}
    assert len(found) > 5


@pytest.mark.parametrize("door", databases.DOORS)
def test_the_log_of_moves_is_bound_and_stays_sound(door, place):
    with place.open(door, key=KEY) as store:
        chat = store.thread("chat", owner="ann")
        for n in range(6):
            chat.save({"n": n})
        chat.label("first", "@1")
        chat.rewind("@3")
        chat.undo()
        chat.record("key", 1)
        chat.forget("key")
        chat.fork("fork").rewind("@2")
        chat.rewind("@2")
        chat.undo()
        store.prune(Retention(last=2))
        chat.label("second")
        assert store.verify(seal=store.seal()).problems == ()
        assert "forget" in [move.kind for move in chat.moves(None)]

    last = "(select max(seq) from hf.move where kind like 'mark~%')"
    for change in (
        f"update hf.move set target = null where seq = {last}",
        "delete from hf.move where kind like 'forget~%'",
        "update hf.move set kind = 'mark' where kind like 'mark~%'",
    ):
        place.run("create table hf.kept as table hf.move")
        place.run(change)
        with place.open(door, key=KEY) as store:
            assert not store.verify(quick=True).ok
            with raises(Corrupt):
                store.thread("chat").moves(None)
        place.run("delete from hf.move")
        place.run("insert into hf.move table hf.kept")
        place.run("drop table hf.kept")
    with place.open(door, key=KEY) as store:
        assert store.verify().problems == ()
