"""One statement and one round trip: what the calls of an agent cost on PostgreSQL.

Statements are counted by the server, round trips in the driver's trace of the protocol.
"""

from __future__ import annotations

import re
import tempfile
import uuid
from pathlib import Path

import psycopg
import pytest

import holdfast
from holdfast.backends import UNSET, Entry, Write
from holdfast.testing._bridge import finished
from inner.postgres import AT_ONCE, postgres_package, statements, text_of
from inner.sql import sql_package
from inner.views import all_waiting
from support import databases, servers
from support.stores import backend_of

MESSAGES = [{"role": "user", "content": f"{n} " + "x" * 2000} for n in range(1000)]


@pytest.fixture(scope="module", params=databases.CORNERS, ids="-".join)
def corner(request):
    """A server, and a door to it."""
    return request.param


@pytest.fixture(scope="module")
def address(corner):
    return servers.shared(corner[0])


@pytest.fixture(scope="module")
def store(corner, address):
    """A store with one connection; its cache is too small for the long state."""
    schema = f"trips_{uuid.uuid4().hex[:8]}"
    special = {"schema": schema, "pool": (1, 1), "cache_size": 100_000}
    with databases.DOORS[corner[1]](address, **special) as store:
        store.thread("long").save({"messages": MESSAGES})
        for n in range(30):
            store.thread("short").append(messages=[n])
        store.thread("short").record("key", 1)
        yield store
    servers.drop_schema(address, schema)


@pytest.fixture(scope="module")
def schema(address):
    """The schema of a store with a thread ``x``."""
    name = f"trips_{uuid.uuid4().hex[:8]}"
    with holdfast.open(address, schema=name) as store:
        store.thread("x").save({"messages": MESSAGES[:2]})
        store.thread("x").record("x", 1)
    yield name
    servers.drop_schema(address, name)


class Meter:
    """Counts what a store's only connection does."""

    def __init__(self, store, address):
        self.address = address
        self._connections = backend_of(store)._connections
        self._admin = psycopg.connect(address, autocommit=True)
        self._admin.execute("create extension if not exists pg_stat_statements")
        self._schema = backend_of(store)._schema

    def close(self):
        self._admin.close()

    def of(self, call):
        """Statements, and round trips, of a call."""
        connection = databases.only_connection(self._connections)
        with tempfile.TemporaryFile() as trace:
            self._admin.execute("select pg_stat_statements_reset()")
            connection.pgconn.trace(trace.fileno())
            try:
                call()
            finally:
                connection.pgconn.untrace()
            trace.seek(0)
            sent = re.findall(rb"\tF\t\d+\t(?:Sync|Query)\b", trace.read())
        return len(self.statements()), len(sent)

    def statements(self):
        """The texts of the statements since the last count, each as often as it ran."""
        found = self._admin.execute(
            "select query, calls from pg_stat_statements"
            " where toplevel and query not like '%pg_stat_statements%'"
        ).fetchall()
        return [text for text, calls in found for _ in range(calls)]


@pytest.fixture
def meter(store, address):
    meter = Meter(store, address)
    yield meter
    meter.close()


def _appending(store):
    """An append to a thread whose head this store has just saved."""
    store.thread("short").append(messages=[0])
    return lambda: store.thread("short").append(messages=[1])


def _saving(store):
    store.thread("short").save({"messages": [0]})
    return lambda: store.thread("short").save({"messages": [0, 1]})


def _saving_with_journal(store):
    store.thread("short").save({"messages": [0]})
    return lambda: store.thread("short").save(
        {"messages": [1]}, journal={"a": 1, "b": 2}
    )


def _saving_expecting(store):
    head = store.thread("short").save({"n": 0})
    return lambda: store.thread("short").save({"n": 1}, expect=head)


async def _commit(context, write):
    return await context.backend.commit([write])


def _writing(store, **fields):
    """A write to the journal that the port takes and no call of a thread makes."""
    entry = Entry("short", "", uuid.uuid4().hex, b"1", 1)
    write = Write(thread="short", at=1, entries=(entry,), **fields)
    return lambda: finished(store.runner.run(_commit, write))


CALLS = {
    "save": _saving,
    "append": _appending,
    "save with a journal": _saving_with_journal,
    "compare-and-swap": _saving_expecting,
    "first save": lambda store: (
        lambda: store.thread(uuid.uuid4().hex).save({"n": 1}, expect=None)
    ),
    "record": lambda store: (
        lambda: store.thread("short").record(uuid.uuid4().hex, {"paid": True})
    ),
    "record on an expected head": lambda store: _writing(
        store, expect=store.thread("short").head
    ),
    "record and forget": lambda store: _writing(store, expect=UNSET, forget=("key2",)),
    "record in a family": lambda store: _writing(store, expect=UNSET, family_wide=True),
    "recorded": lambda store: lambda: store.thread("short").recorded("key"),
    "head": lambda store: lambda: store.thread("long").head,
    "history": lambda store: lambda: store.thread("short").history(20),
    "load": lambda store: lambda: store.thread("long").load(),
    "get": lambda store: lambda: store.thread("short").get(),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_call_is_one_statement_and_one_round_trip(call, store, meter):
    for _ in range(8):  # until the statement is prepared
        CALLS[call](store)()
    counted = CALLS[call](store)

    assert meter.of(counted) == (1, 1)


def test_a_call_on_a_new_connection_is_one_statement_as_well(store, address, meter):
    schema = backend_of(store)._schema
    special = {"schema": schema, "pool": (1, 1)}
    with holdfast.open(address, **special) as fresh:
        meter._connections = backend_of(fresh)._connections

        assert meter.of(lambda: fresh.thread("long").load()) == (1, 1)


@pytest.fixture
def records(store):
    """Records of every type with values that are too long for a manifest."""
    for n in range(5):
        long = f"{n}" * 1000
        store.agents.save(holdfast.Agent(id=f"a{n}", config={"prompt": long}))
        store.conversations.create(f"c{n}", context={"long": long})
        store.documents.save(f"d{n}", "short", metadata={"long": long})
    yield store
    for group, prefix in ((store.agents, "a"), (store.documents, "d")):
        group.delete(*(f"{prefix}{n}" for n in range(5)))
    store.conversations.delete(*(f"c{n}" for n in range(5)))


LISTINGS = {
    "agents": lambda store: store.agents.list(),
    "conversations": lambda store: store.conversations.list(),
    "documents": lambda store: store.documents.list(),
}


@pytest.mark.parametrize("listing", LISTINGS)
def test_a_page_is_two_statements_however_many_records_it_has(listing, records, meter):
    for _ in range(8):  # until the statements are prepared
        assert len(LISTINGS[listing](records)) == 5

    assert meter.of(lambda: LISTINGS[listing](records)) == (2, 2)


def test_what_the_threads_of_a_page_wait_for_takes_as_many_statements_as_for_two(
    records, store, meter
):
    # The views are of a store that blocks, on either door to the same rows.
    schema = backend_of(store)._schema
    with holdfast.open(
        meter.address, schema=schema, pool=(1, 1), read_only=True
    ) as reading:
        meter._connections = backend_of(reading)._connections
        page = reading.threads(limit=None)
        assert len(page) > 10
        all_waiting(reading, page)

        counts = [
            meter.of(lambda n=n: all_waiting(reading, page[:n]))[0] for n in (2, 10)
        ]

    assert counts == [2, 2]


def test_a_thread_that_is_saved_often_keeps_its_place_in_all_indexes(store, address):
    schema = backend_of(store)._schema
    place = f"select ctid from {schema}.thread where name = 'short'"
    with psycopg.connect(address, autocommit=True) as admin:
        admin.execute("create extension if not exists pageinspect")
        admin.execute(f"vacuum {schema}.thread")
        for n in range(20):
            store.thread("short").append(messages=[n])
        [(moved,)] = admin.execute(place)
        page = int(moved.strip("()").partition(",")[0])
        # 0x8000: the version was reached from the one before it, by no index.
        [(heap_only,)] = admin.execute(
            "select count(*) from heap_page_items(get_raw_page(%s, %s))"
            " where t_infomask2 & 32768 <> 0",
            (f"{schema}.thread", page),
        )

    assert heap_only > 0


SOURCES = "".join(
    path.read_text()
    for package in (postgres_package, sql_package)
    for path in Path(package.__file__).parent.glob("*.py")
)
# These are put together: {family,thread}_saves_{newest,oldest}, rescue_family_{...}.
BUILT = re.compile(r"\w+_saves_(newest|oldest)|rescue_family_\w+")


@pytest.mark.parametrize("file", ["shared.sql", "queries.sql", "search.sql"])
def test_every_statement_is_used(file):
    names = [n for n in statements("hf", file) if not BUILT.fullmatch(n)]

    assert [n for n in names if f'"{n}"' not in SOURCES] == []


# --- the hot path ---------------------------------------------------------------------

# These have the family as the first column of their key.
BY_FAMILY = ("thread", "checkpoint", "segment", "journal", "move")
HOT = {
    name: sql.decode()
    for file in ("shared.sql", "queries.sql")
    for name, sql in statements("hf", file).items()
    if f"-- name: {name}\n-- hot\n" in text_of(file)
}


def _shape(sql):
    """A statement without its parameters, constants and comments."""
    plain = re.sub(r"--.*", "", sql)
    plain = re.sub(r"%\(\w+\)s|\$\d+|'[^']*'|\b(?:\d+|null|true|false)\b", "?", plain)
    return re.sub(r"\s+", " ", plain).strip()


@pytest.mark.parametrize("call", CALLS)
def test_what_a_call_runs_is_marked_hot(call, store, meter):
    schema = backend_of(store)._schema
    hot = {_shape(sql.replace("hf.", f"{schema}.")) for sql in HOT.values()}
    counted = CALLS[call](store)

    meter.of(counted)

    assert {_shape(sql) for sql in meter.statements()} <= hot


NUMBERS = ("family", "seq", "number", "head", "was", "at", "changed", "known", "depth")
NUMBERS += ("skip", "down_to_step", "from_step", "thread_number", "recorded_at")


ARRAYS = ("owners", "numbers", "packings", "pieces", "checksums")


def _values(name):
    """Values for a hot statement about the thread ``x``."""
    named = set(re.findall(r"%\((\w+)\)s", HOT[name]))
    values = {n: 1 if n in NUMBERS else "x" for n in named}
    values |= {"firsts": [1], "lasts": [2], "durable": AT_ONCE, "checkpoints": "[]"}
    values |= {n: [] for n in named if n.startswith("all_") or n in ARRAYS}
    if name in {"entry", "insert_entry"}:
        values |= {"thread": 1, "value": b"", "checksum": 1}
    if name == "ancestors":
        values |= {"family": None, "seq": None}
    return values


SCANNED = "select coalesce(sum(seq_scan), 0) from pg_stat_xact_user_tables"


@pytest.mark.parametrize(
    "name", sorted(set(HOT) - {"save", "append", "save_and_record", "record"})
)
def test_no_hot_statement_scans_a_table(name, schema, address):
    sql = HOT[name].replace("hf.", f"{schema}.")

    with psycopg.connect(address) as connection:
        connection.execute("set enable_seqscan = off")
        connection.execute(sql, _values(name))
        [(scans,)] = connection.execute(SCANNED).fetchall()
        connection.rollback()

    assert scans == 0


def test_every_key_begins_with_the_family(schema, address):
    with psycopg.connect(address) as admin:
        found = admin.execute(
            "select c.relname, a.attname from pg_index i"
            " join pg_class c on c.oid = i.indrelid"
            " join pg_attribute a on a.attrelid = c.oid and a.attnum = i.indkey[0]"
            " where i.indisprimary and c.relnamespace = to_regnamespace(%s)",
            (schema,),
        ).fetchall()

    keys = dict(found)
    assert {keys[table] for table in BY_FAMILY} == {"family"}
    assert set(keys) - set(BY_FAMILY) == {"directory", "setting", "migration"}


def test_no_trigger_and_no_foreign_key_is_needed(schema, address):
    with psycopg.connect(address) as admin:
        [(triggers,)] = admin.execute(
            "select count(*) from pg_trigger t join pg_class c on c.oid = t.tgrelid"
            " where c.relnamespace = to_regnamespace(%s)",
            (schema,),
        ).fetchall()
        kinds = admin.execute(
            "select distinct contype::text from pg_constraint"
            " where connamespace = to_regnamespace(%s)",
            (schema,),
        ).fetchall()

    assert triggers == 0
    assert set(kinds) <= {("p",), ("n",)}  # primary keys, and columns that are not null
