"""Scopes on PostgreSQL: a role that row-level security binds to one of them."""

from __future__ import annotations

import uuid

import psycopg
import pytest
from psycopg import errors

import holdfast
from holdfast import NotFound
from holdfast.testing import raises
from inner.postgres import bind_role
from support import databases, servers

OF_FAMILIES = ("segment", "journal", "move")
OTHERS = ("directory", "thread", "checkpoint", "setting", "thread_full")
TABLES = (*OF_FAMILIES, *OTHERS, "checkpoint_full")


@pytest.fixture
def place():
    with databases.place(servers.shared(servers.NAMES[0])) as place:
        yield place


@pytest.fixture
def role(place):
    """A role that may log in, and nothing else."""
    name = f"role_{uuid.uuid4().hex[:12]}"
    place.run(f"create role {name} login")
    yield name
    place.run(f"drop owned by {name}")
    place.run(f"drop role {name}")


def fill(store, text):
    chat = store.thread("chat", owner="ann")
    chat.save({"text": text * 300})
    chat.append(messages=[text * 300])
    chat.record("key", text)
    chat.fork("fork")
    chat.rewind("@~1")
    store.thread("gone").save({})
    store.delete("gone")


def as_role(place, role):
    host = place.url.rpartition("@")[2]
    return f"postgresql://{role}@{host}"


@pytest.fixture
def bound(place, role):
    """The address for a role that is bound to the scope A, beside a scope B."""
    with place.open() as store:
        fill(store, "o")
        fill(store.scope("A"), "a")
        fill(store.scope("B"), "b")
        store.runner.run(set_in, "B")
    bind_role(place.url, role, "A", schema=place.schema)
    return as_role(place, role)


async def set_in(context, scope):
    await context.backend.setting(f"{scope}\x1fown", b"x")


def rows(url, schema, table):
    with psycopg.connect(url) as connection:
        return connection.execute(f"select * from {schema}.{table}").fetchall()


@pytest.mark.parametrize("door", databases.DOORS)
def test_a_bound_role_works_in_its_scope(bound, place, door):
    with databases.DOORS[door](bound, schema=place.schema, scope="A") as store:
        fill(store.scope("inner"), "i")
        assert store.thread("chat").load() == {"text": "a" * 300}
        assert len(store.search("aaa")) == 1
        assert store.verify().ok
        assert store.stats().threads == 4
        for number in range(3):
            store.thread("many").save(number)
        assert store.prune(holdfast.Retention(last=1)).checkpoints == 2
        assert store.delete("chat", "fork", "many") == 3

    with place.open() as store:
        assert [t.id for t in store.scope("A").threads()] == [
            "inner\x1fchat",
            "inner\x1ffork",
        ]
        assert store.verify().ok
        assert store.scope("B").thread("chat").load() == {"text": "b" * 300}


def test_a_bound_role_sees_no_row_of_others(bound, place):
    every = dict(place.run("select name, family from hf.thread"))
    own = {family for name, family in every.items() if name.startswith("A\x1f")}

    for table in TABLES:
        found = rows(bound, place.schema, table)
        assert len(found) < len(rows(place.url, place.schema, table))
        assert "B\x1f" not in str(found)
    for table in OF_FAMILIES:
        seen = {row[0] for row in rows(bound, place.schema, table)}
        assert seen
        assert seen <= own


FOREIGN = {
    "a thread": "update hf.thread set owner = 'me' where name like 'B%%' returning 1",
    "a head": "delete from hf.checkpoint where thread_name <> 'A\x1fchat' returning 1",
    "a family": "delete from hf.segment where family = %(family)s returning 1",
    "a setting": "delete from hf.setting where name like 'B%%' returning 1",
    "a binding": "update hf.tenant set prefix = '' returning 1",
}
REFUSED = {
    "a name": "insert into hf.directory values ('B\x1fnew', 99, 99, null)",
    "an entry": "insert into hf.journal values (%(family)s, 1, 1, 1, 1, '', 'k', '')",
    "a move": "insert into hf.move values (%(family)s, 999, 1, 'mark', 1, 1, 1)",
    "a key": "insert into hf.setting values ('keys', '')",
    "a binding": "insert into hf.tenant values ('me', '')",
}


@pytest.mark.parametrize("sql", [*FOREIGN.values(), *REFUSED.values()])
def test_a_bound_role_cannot_write_elsewhere(bound, place, sql):
    with place.open() as store:
        foreign = store.scope("B").thread("chat").about.family
    stored = [rows(place.url, place.schema, table) for table in TABLES]

    with psycopg.connect(bound, autocommit=True) as connection:
        try:
            text = sql.replace("hf.", f"{place.schema}.")
            found = connection.execute(text, {"family": foreign}).fetchall()
        except errors.InsufficientPrivilege:
            found = []

    assert found == []
    assert [rows(place.url, place.schema, table) for table in TABLES] == stored


def test_a_bound_role_imports_into_its_scope(bound, place, tmp_path):
    with holdfast.open(bound, schema=place.schema, scope="A") as store:
        store.export_to(tmp_path / "a.archive")
        assert store.delete("chat", "fork") == 2

        imported = store.import_archive(tmp_path / "a.archive")

        assert imported.threads == ("chat", "fork")
        assert store.thread("chat").load() == {"text": "a" * 300}
        assert store.verify().ok


# With `family` and `number` of a thread of B, `own` and `mine` of one of A: a thread
# of A's in the family of another, in one that is still to be made, and in its own with
# the number of another; a name of A's that leads to the thread of another; the next
# checkpoint of another's thread.
INTRUSIONS = """
insert into hf.thread
    (family, number, name, metadata, changed, created_at, updated_at, kind)
values (%(family)s, nextval('hf.number'), 'A\x1fevil', '', 1, 1, 1, 'thread');

insert into hf.thread
    (family, number, name, metadata, changed, created_at, updated_at, kind)
select v + 3, v + 3, 'A\x1fevil', '', 1, 1, 1, 'thread' from nextval('hf.number') v;

insert into hf.thread
    (family, number, name, metadata, changed, created_at, updated_at, kind)
values (%(own)s, %(number)s, 'A\x1fevil', '', 1, 1, 1, 'thread');

update hf.thread set family = %(family)s where number = %(mine)s;

update hf.thread set number = %(number)s where number = %(mine)s;

insert into hf.directory (name, number, family)
values ('A\x1fevil', %(number)s, %(family)s);

update hf.directory set number = %(number)s, family = %(family)s
where name = 'A\x1fchat';

insert into hf.checkpoint (family, seq, thread, step, saved_at, size, checksum, id,
    thread_name, kind, metadata, runs, manifest, digest)
select %(family)s, last_value + 1, 1, 1, 1, 1, 1, 'id', 'A\x1fevil', 'save', '', '[]',
    '', '' from hf.seq;

update hf.checkpoint set family = %(family)s where family = %(own)s;

update hf.segment set family = %(family)s where family = %(own)s;

update hf.journal set family = %(family)s where family = %(own)s;

update hf.move set family = %(family)s where family = %(own)s;

insert into hf.setting values ('graves', '')
"""
# What the role can put in front of PostgreSQL's own, in a schema of its own.
SHADOWS = """
create function own.yes(bigint, bigint) returns boolean language sql as 'select true';
create function own.yes(name, name) returns boolean language sql as 'select true';
create operator own.= (leftarg = bigint, rightarg = bigint, function = own.yes);
create operator own.= (leftarg = name, rightarg = name, function = own.yes);
create function own.starts_with(text, text) returns boolean
language sql as 'select true';
create function own.currval(regclass) returns bigint language sql as 'select 1::bigint';
"""


@pytest.mark.parametrize("path", ["pg_catalog", "own, pg_catalog"])
def test_no_family_is_of_two_scopes_whatever_a_role_runs(bound, place, role, path):
    with place.open() as store:
        theirs, ours = (store.scope(s).thread("chat").about for s in "BA")
    places = {"family": theirs.family, "number": theirs.number}
    places |= {"own": ours.family, "mine": ours.number}
    stored = [rows(place.url, place.schema, table) for table in TABLES]
    own = f"own_{uuid.uuid4().hex[:8]}"
    place.run(f"create schema {own} authorization {role}")

    with psycopg.connect(bound, autocommit=True) as connection:
        connection.execute(SHADOWS.replace("own.", f"{own}."))
        connection.execute(f"set search_path = {path.replace('own', own)}")
        for intrusion in INTRUSIONS.split(";"):
            with pytest.raises((errors.InsufficientPrivilege, errors.OperationalError)):
                connection.execute(intrusion.replace("hf.", f"{place.schema}."), places)
        text = f"select family from {place.schema}.segment"
        seen = {family for (family,) in connection.execute(text)}

    place.run(f"drop schema {own} cascade")
    assert theirs.family not in seen
    assert [rows(place.url, place.schema, table) for table in TABLES] == stored


def test_binding_again_secures_a_store_of_an_older_version(bound, place, role):
    with place.open() as store:
        theirs = store.scope("B").thread("chat").about
    place.run("drop policy own_family on hf.thread")
    place.run("drop policy own_family on hf.directory")
    place.run("drop policy own_family on hf.checkpoint")
    place.run("drop function hf.sees_family(bigint)")
    place.run(f"grant update on hf.thread to {role}")
    with psycopg.connect(bound, autocommit=True) as connection:
        intrusions = INTRUSIONS.replace("hf.", f"{place.schema}.").split(";")
        connection.execute(intrusions[0], {"family": theirs.family})
        other = f"role_{uuid.uuid4().hex[:12]}"
        place.run(f"create role {other} login")

        with raises(holdfast.Conflict, code="mixed_scopes"):
            bind_role(place.url, other, "C", schema=place.schema)

        place.run("delete from hf.thread where name = 'A\x1fevil'")
        bind_role(place.url, other, "C", schema=place.schema)
        for intrusion in (intrusions[0], intrusions[3]):
            with pytest.raises(errors.InsufficientPrivilege):
                connection.execute(intrusion, {"family": theirs.family, "mine": 1})
    place.run(f"drop owned by {other}")
    place.run(f"drop role {other}")


def test_a_role_cannot_leave_its_scope_by_the_library(bound, place, role):
    with holdfast.open(bound, schema=place.schema) as store:
        assert {thread.id.partition("\x1f")[0] for thread in store.threads()} == {"A"}
        with raises(holdfast.HoldfastError):
            store.scope("B").thread("new").save({})
        assert not store.scope("B").threads()

    bind_role(place.url, role, None, schema=place.schema)
    with holdfast.open(bound, schema=place.schema) as store:
        assert store.scope("B").threads()


def test_a_role_that_is_not_bound_sees_nothing(bound, place, role):
    place.run("delete from hf.tenant where role = %s", [role])

    assert rows(bound, place.schema, "thread") == []


def test_a_role_must_exist(place):
    with raises(NotFound):
        bind_role(place.url, "nobody_at_all", "A", schema=place.schema)


def test_a_bound_role_erases_in_its_scope(bound, place):
    with holdfast.open(bound, schema=place.schema, scope="A") as store:
        assert store.erase(owner="ann", forks=True).threads == 2
        with raises(holdfast.Conflict, code="thread_deleted"):
            store.thread("chat").save({})

    with place.open() as store:
        assert store.scope("B").thread("chat").load() == {"text": "b" * 300}
        assert store.verify().ok


@pytest.mark.parametrize("key", [None, bytes(range(32))])
def test_the_threads_of_scopes_are_salvaged_under_their_names(key, place, tmp_path):
    with place.open(key=key) as store:
        fill(store.scope("acme"), "a")
        report = store.salvage(str(tmp_path / "saved.db"))

    assert (report.threads, report.lost) == (2, ())
    with holdfast.open(tmp_path / "saved.db", key=key) as saved:
        acme = saved.scope("acme")
        assert {thread.id for thread in acme.threads()} == {"chat", "fork"}
        assert acme.thread("chat").load() == {"text": "a" * 300}
        assert acme.thread("chat").about.owner == "ann"
