"""The SQLite backend's statements: all used, indexed, never built from data."""

from __future__ import annotations

import re
from pathlib import Path

import apsw
import pytest

import holdfast
from holdfast.backends import Backend
from inner.postgres import statements
from inner.sql import sql_package
from inner.sqlite import QUERIES, sqlite_package
from support.stores import backend_of

SOURCES = [
    path.read_text()
    for package in (sqlite_package, sql_package)
    for path in Path(package.__file__).parent.glob("*.py")
]

# These look at all threads on purpose.
READS_ALL_THREADS = {"described_threads", "forget_tombstones", "headed_by", "kinds"}
# These count or list the whole store.
READS_EVERYTHING = {
    "facts", "weights", "forget_moves", "wrong_rows", "orphans",
    "weigh_threads", "drop_dictionary", "pack_manifests",
}  # fmt: skip


@pytest.fixture
def store(tmp_path):
    with holdfast.open(tmp_path / "a.db") as store:
        yield store


def spelled_out(name: str) -> bool:
    built = ("_saves_newest", "_saves_oldest", "rescue_", "last_")
    return any(f'"{name}"' in s for s in SOURCES) or any(b in name for b in built)


def test_every_statement_is_used():
    assert [name for name in QUERIES if not spelled_out(name)] == []


@pytest.mark.parametrize(
    "name", sorted(QUERIES.keys() - READS_ALL_THREADS - READS_EVERYTHING)
)
def test_no_statement_scans_a_table(store, name):
    db = backend_of(store).database.writer
    sql = QUERIES[name]
    places = {*re.findall(r"\?\d+", sql)} or sql.count("?") * "?"
    bindings = dict.fromkeys(re.findall(r":(\w+)", sql)) or (None,) * len(places)

    plan = [row[-1] for row in db.execute(f"explain query plan {sql}", bindings)]

    tables = r"(thread|checkpoint|segment|journal|move|setting|[a-z])"
    scans = [step for step in plan if re.match(rf"SCAN {tables}(?! .*VIRTUAL)$", step)]
    assert not [step for step in scans if step != "SCAN line"], plan


def test_no_statement_is_planned_again_for_another_value(store):
    db = backend_of(store).database.writer
    columns = []
    # SQLite asks about every column when it makes a plan.
    db.authorizer = lambda *asked: columns.append(asked) or apsw.SQLITE_OK

    for name, sql in QUERIES.items():
        places = {*re.findall(r":\w+|\?\d+", sql)} or sql.count("?") * "?"
        if places and sql.startswith(("select", "with")):
            for value in (1, 2):
                columns.clear()
                db.execute(sql, (value,) * len(places)).fetchall()
            assert not columns, name


def test_both_dialects_have_every_statement_that_shared_code_names():
    folder = Path(sql_package.__file__).parent
    shared = "".join(path.read_text() for path in folder.glob("*.py"))
    on_postgres = {
        name
        for file in ("shared.sql", "queries.sql")
        for name in statements("hf", file)
    }

    for name in QUERIES.keys() | on_postgres:
        if f'"{name}"' in shared or name.endswith(("_saves_newest", "_saves_oldest")):
            assert name in QUERIES, name
            assert name in on_postgres, name


def test_hostile_names_never_become_sql(store):
    hostile = ["'; drop table thread; --", '" or 1=1', "%", "*", "[a-z]", "\\", "?1"]
    statements: set[str] = set()

    def exercise(name: str) -> None:
        thread = store.thread(name, owner=name, metadata={name: name})
        thread.save({name: [name]}, label=name, tags=[name], metadata={name: name})
        thread.append(messages=[name])
        thread.record(name, name)
        thread.fork(f"{name} fork")
        assert thread.find(label=name).step == 1
        assert thread.load(f"tag:{name}") == {name: [name]}
        assert [t.id for t in store.threads(owner=name, prefix=name)] == [
            f"{name} fork",
            name,
        ]
        assert len(store.threads(metadata={name: name})) == 2
        assert store.delete(name, f"{name} fork") == 2

    backend = backend_of(store)
    traced = lambda trace: statements.add(trace["sql"])  # noqa: E731 - a callback
    exercise("harmless")
    connections = [backend.database.writer, *backend.database._readers._idle]
    for db in connections:
        db.trace_v2(apsw.SQLITE_TRACE_STMT, traced)
    exercise("as harmless")
    before = set(statements)

    for name in hostile:
        exercise(name)

    assert before
    assert statements == before


def test_the_two_doors_and_all_backends_share_one_port(store):
    verbs = {n for n in vars(Backend) if not n.startswith("_")}

    assert verbs <= set(dir(backend_of(store)))
