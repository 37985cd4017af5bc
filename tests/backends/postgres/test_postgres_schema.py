"""The schema of a store on PostgreSQL: made once, checked, divided, kept apart."""

from __future__ import annotations

import contextlib
import time
import uuid

import psycopg
import pytest

import holdfast
from conformance.forks import ForkedStateTests
from conformance.journal import RecordedValueTests
from conformance.removal import SelectedRemovalTests
from conformance.retention import PrunedBranchTests
from conformance.saves import SavedStateTests, UnchangedSaveTests
from holdfast import (
    FormatMismatch,
    HoldfastError,
    NotFound,
    Retention,
    Unstorable,
    Unsupported,
)
from holdfast.testing import raises
from holdfast.testing.conformance.deletion import DeletionTests
from holdfast.testing.conformance.forks import ForkTests
from holdfast.testing.conformance.journal import JournalTests
from holdfast.testing.conformance.prune import PruneTests
from holdfast.testing.conformance.save import SaveTests
from inner.postgres import FORMAT, VIEWS
from support import databases, servers
from support.programs import run_program

PROCESSES = 16


@pytest.fixture(scope="module", params=servers.NAMES)
def address(request):
    return servers.shared(request.param)


@pytest.fixture
def place(address):
    with databases.place(address) as place:
        yield place


@contextlib.contextmanager
def role(url, *grants):
    """The address of the same database for a role with few rights."""
    name = f"role_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(url, autocommit=True) as admin:
        [(database,)] = admin.execute("select current_database()").fetchall()
        admin.execute(f"create role {name} login password 'secret'")
        for grant in grants:
            admin.execute(f"grant {grant} to {name}")
        yield psycopg.conninfo.make_conninfo(url, user=name, password="secret"), name
        admin.execute(f"drop owned by {name}; drop role {name}")
    assert database


def _uri(conninfo):
    """Our addresses are URIs; psycopg makes the other form."""
    parts = psycopg.conninfo.conninfo_to_dict(conninfo)
    where = f"{parts['host']}:{parts['port']}/{parts['dbname']}"
    return f"postgresql://{parts['user']}:{parts['password']}@{where}"


# --- made by the process that is first ------------------------------------------------


def test_sixteen_processes_that_start_at_once_make_the_tables_once(place):
    reports = run_program("open_together", place.url, place.schema, PROCESSES)

    assert [report["error"] for report in reports] == [None] * PROCESSES
    made = place.run("select format from hf.migration order by format")
    assert made == [(n,) for n in range(1, FORMAT + 1)]
    with place.open() as store:
        assert len(store.threads()) == PROCESSES
        assert store.verify().problems == ()


def test_opening_again_changes_nothing(place):
    place.open().close()
    before = place.run("select format, applied_at from hf.migration")

    place.open().close()

    assert place.run("select format, applied_at from hf.migration") == before


def test_blocks_of_the_format_before_are_looked_for(place):
    with place.open() as store:
        chat = store.thread("a")
        saved = [chat.append(messages=[f"{n} {'x' * 500}"]) for n in range(12)]
        store.compact()
    # The schema is back at format 2, which does not tell where the blocks are.
    place.run("drop function hf.append; alter table hf.thread drop column packed_to")
    place.run("delete from hf.migration where format >= 3")

    with place.open() as store:
        chat = store.thread("a")
        chat.rewind(saved[5])
        chat.append(messages=["other"])

        assert chat.load()["messages"][5:] == [f"5 {'x' * 500}", "other"]
        assert len(chat.load(saved[-1])["messages"]) == 12
        assert store.verify().problems == ()


def test_a_schema_of_the_first_format_is_brought_up_to_date(place):
    with place.open() as store:
        for n in range(5):
            store.thread("a").append(messages=[f"{n} {'x' * 500}"])
        before = store.thread("a").load()
    place.run("drop function hf.append; drop function hf.is_in_block")
    place.run("alter table hf.thread drop column packed_to")
    place.run("alter table hf.segment drop column count")
    place.run("create function hf.state(n int) returns int language sql as 'select 1'")
    place.run("delete from hf.migration where format > 1")

    with place.open() as store:
        store.compact()
        store.thread("a").fork("b", at="@2").append(messages=["other"])

        assert store.thread("a").load() == before
        assert store.thread("b").load()["messages"][2:] == ["other"]
        assert store.verify().problems == ()
    assert place.run("select format from hf.migration order by format") == [
        (n,) for n in range(1, FORMAT + 1)
    ]


def test_a_migration_that_fails_leaves_nothing(place):
    place.run(f"create schema {place.schema}")
    place.run("create table hf.segment (n int)")

    with raises(HoldfastError, "database"):
        place.open()

    assert place.run(
        "select to_regclass('hf.thread'), to_regclass('hf.migration')"
    ) == [(None, None)]


def test_a_newer_format_is_refused_and_left_alone(place):
    with place.open() as store:
        store.thread("a").save({"n": 1})
        place.run("insert into hf.migration (format) values (99)")

        for options in ({}, {"read_only": True}):
            with raises(FormatMismatch):
                place.open(**options)

        # Who was there before goes on.
        assert store.thread("a").save({"n": 2}).step == 2


def test_two_schemas_of_one_database_know_nothing_of_each_other(place, address):
    with (
        databases.place(address) as other,
        place.open() as one,
        other.open() as two,
    ):
        other.run("insert into hf.migration (format) values (99)")
        saved = one.thread("a").save({"in": "one"})
        two.thread("a").save({"in": "two"})
        two.thread("b").save({"in": "two"})

        assert one.thread("a").load() == {"in": "one"}
        assert [change.subject for change in one.changes()] == [saved.id]
        assert len(two.threads()) == 2
        with raises(FormatMismatch):
            other.open()
        place.open().close()


PLAIN = ("Upper", "a-b", "a b", "a;b", "", "a" * 42, "ä", '"a"')
FREE = ("information_schema", "pg_catalog", "pg_temp", "pg_toast", "user", "left")


@pytest.mark.parametrize("name", [*PLAIN, *FREE])
def test_a_schema_has_a_plain_name_that_is_free(name, address):
    with raises(Unstorable):
        holdfast.open(address, schema=name)


# --- what names mean ------------------------------------------------------------------

# In front of PostgreSQL's own, and for arguments that those have to convert.
SHADOWS = """
create table own.called ();
create function own.no(bigint, bigint) returns boolean language sql
as 'insert into own.called default values; select false';
create operator own.= (leftarg = bigint, rightarg = bigint, function = own.no);
create function own.nextval(text) returns bigint language sql
as 'insert into own.called default values; select 1::bigint';
create function own.cardinality(bigint[]) returns bigint language sql
as 'insert into own.called default values; select 0::bigint';
"""


@pytest.mark.parametrize("path", ["own, pg_catalog", "own"])
@pytest.mark.parametrize("door", databases.DOORS)
def test_statements_mean_the_same_whatever_the_search_path(door, path, place):
    own = f"own_{uuid.uuid4().hex[:8]}"
    with role(place.url) as (conninfo, name):
        place.run(f"create schema {place.schema} authorization {name}")
        place.run(f"create schema {own} authorization {name}")
        user = databases.Place(_uri(conninfo), place.schema)
        with user.connect(autocommit=True) as connection:
            connection.execute(SHADOWS.replace("own.", f"{own}."))
        place.run(f"alter role {name} set search_path = {path.replace('own', own)}")

        with user.open(door) as store:
            for n in range(3):
                store.thread("a").append(log=[n])
            store.conversations.create(
                "c", messages=[{"role": "user", "content": "hi there"}]
            )
            store.thread("a").fork("b")
            assert store.thread("b").load() == {"log": [0, 1, 2]}
            assert len(store.search("there")) == 1
            assert store.prune(Retention(last=1)).checkpoints
            assert store.verify().ok
        assert place.run(f"select * from {own}.called") == []
        place.run(f"drop schema {own} cascade")


def test_a_transaction_in_which_names_mean_something_else_is_refused(place):
    with place.open() as store, place.connect() as connection:
        connection.execute("set search_path = public, pg_catalog")
        with raises(Unsupported, "search_path"):
            store.using(connection).thread("a").save({})

        connection.execute("set search_path = pg_catalog, public")
        store.using(connection).thread("a").save({"n": 1})
        connection.commit()
        assert store.thread("a").load() == {"n": 1}


# --- for reading only -----------------------------------------------------------------


@pytest.mark.parametrize("door", databases.DOORS)
def test_a_read_only_store_makes_and_changes_nothing(door, place):
    with raises(NotFound):
        place.open(door, read_only=True)
    assert place.run("select to_regnamespace(%s)", (place.schema,)) == [(None,)]
    with place.open() as store:
        store.conversations.create("c", messages=[{"role": "user", "content": "hello"}])

    with place.open(door, read_only=True) as store:
        with raises(Unsupported, "read_only"):
            store.thread("a").save({})
        with raises(Unsupported, "read_only"):
            store.delete("conversation:c")

        assert [match.conversation for match in store.search("hello")] == ["c"]
    assert place.run("select to_regclass('hf.search_stretch')") == [(None,)]


@pytest.mark.parametrize("door", databases.DOORS)
def test_a_server_that_lets_a_role_only_read_says_so_at_once(door, place):
    with role(place.url) as (conninfo, name):
        place.run(f"create schema {place.schema} authorization {name}")
        user = databases.Place(_uri(conninfo), place.schema)
        with user.open(door, busy_timeout=60) as store:
            store.thread("a").save({"n": 1})
            place.run(f"alter role {name} set default_transaction_read_only = on")
            end = "select pg_terminate_backend(pid) from pg_stat_activity"
            place.run(f"{end} where usename = %s", (name,))
            begun = time.monotonic()

            with raises(Unsupported, "read_only"):
                store.thread("a").save({"n": 2})
            with raises(Unsupported, "read_only"):
                user.open(door, busy_timeout=60)

            assert time.monotonic() - begun < 30
            assert store.thread("a").load() == {"n": 1}
        with user.open(door, read_only=True) as store:
            assert store.thread("a").load() == {"n": 1}


def test_who_may_only_read_can_read(place):
    with place.open() as store:
        store.thread("a").save({"n": 1})
    with role(place.url, "pg_read_all_data") as (conninfo, _):
        reader = databases.Place(_uri(conninfo), place.schema)

        with reader.open(read_only=True) as store:
            assert store.thread("a").load() == {"n": 1}
            assert len(store.changes()) == 1
            assert store.verify().problems == ()


@pytest.mark.parametrize("searched", [False, True])
def test_who_may_not_change_the_tables_is_told_or_does_without(place, searched):
    with place.open() as store:
        store.conversations.create("c", messages=[{"role": "user", "content": "hello"}])
        if searched:
            store.search("hello")
    with role(place.url) as (conninfo, name):
        place.run(f"grant usage on schema {place.schema} to {name}")
        place.run(f"grant all on all sequences in schema {place.schema} to {name}")
        for table in databases.TABLES:
            place.run(f"grant insert, update, delete on hf.{table} to {name}")
        for table in (*databases.TABLES, "migration", *VIEWS):
            place.run(f"grant select on hf.{table} to {name}")
        user = databases.Place(_uri(conninfo), place.schema)

        with user.open() as store:
            assert [match.conversation for match in store.search("hello")] == ["c"]
            with raises(Unsupported, "not_allowed"):
                store.compact()
    with place.open() as store:
        store.compact()


def test_a_schema_made_by_somebody_else_will_do(place):
    with role(place.url) as (conninfo, name):
        place.run(f"create schema {place.schema} authorization {name}")
        owner = databases.Place(_uri(conninfo), place.schema)

        with owner.open() as store:
            store.thread("a").save({"n": 1})
            assert store.thread("a").load() == {"n": 1}


def test_an_address_that_leads_nowhere_says_why(address):
    cases = {
        "postgresql://nobody@127.0.0.1:1/none": "refused",
        address.replace("/postgres", "/no_such_database"): "no_such_database",
    }
    for url, reason in cases.items():
        with pytest.raises(HoldfastError, match=reason) as raised:
            holdfast.open(url, busy_timeout=0.5)
        assert raised.value.code == "connection_lost"


@pytest.mark.parametrize("url", ["postgresql://h/d?nonsense=1", "postgresql://[::1"])
def test_an_address_that_is_none_is_refused_at_once(url):
    with raises(Unstorable):
        holdfast.open(url)


def test_a_database_that_cannot_hold_every_text_is_refused(place):
    name = f"latin_{uuid.uuid4().hex[:8]}"
    place.run(f"create database {name} encoding 'LATIN1' locale 'C' template template0")
    url = f"{place.url.rpartition('/')[0]}/{name}"
    try:
        with raises(Unsupported):
            holdfast.open(url)
    finally:
        place.run(f"drop database {name} with (force)")


# --- divided --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def divided():
    url = servers.shared(servers.NAMES[-1])
    emptied = servers.Emptied(url, f"parts_{uuid.uuid4().hex[:8]}")
    yield emptied
    emptied.close()


class TestPartitioned(
    SaveTests,
    SavedStateTests,
    UnchangedSaveTests,
    ForkTests,
    ForkedStateTests,
    PruneTests,
    PrunedBranchTests,
    DeletionTests,
    SelectedRemovalTests,
    JournalTests,
    RecordedValueTests,
):
    """What touches every table once more, on tables of four parts."""

    # Parts with nothing in them take room too.
    test_a_compacted_store_is_smaller_and_whole = None

    @pytest.fixture(autouse=True)
    def place(self, divided):
        divided.empty()
        self.url, self.schema = divided.url, divided.schema

    def open_store(self, **options):
        special = {"schema": self.schema, "pool": (1, 4), "partitions": 4}
        return holdfast.open(self.url, **(special | options))


def test_families_are_spread_over_the_parts(place):
    with place.open(partitions=4) as store:
        for n in range(40):
            store.thread(f"t{n}").append(messages=["x" * 500])
            store.thread(f"t{n}").fork(f"f{n}").append(messages=["x" * 500])

        for table in ("thread", "checkpoint", "segment"):
            parts = place.run(
                f"select tableoid::regclass::text, count(distinct family)"
                f" from hf.{table} group by 1"
            )
            assert len(parts) == 4
            assert sum(count for _, count in parts) == 40
        assert store.verify().problems == ()
