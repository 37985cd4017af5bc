"""A store whose tables are distributed: every statement leads to one shard."""

from __future__ import annotations

import re

import psycopg
import pytest

from inner.postgres import (
    FUNCTIONS_FILE,
    MIGRATIONS,
    prepared,
    split,
    statements,
    text_of,
)
from support import citus, databases, servers, shards

# These read or change more than one family, for the reason beside them.
EVERYWHERE = {
    "save_each": "saves of several families; sent one by one where it is refused",
    "threads": "a listing",
    "narrowed_threads": "a listing",
    "described_threads": "a listing",
    "own_entries": "journals of several threads",
    "hold": "finds the families of several names",
    "families_end": "a prune",
    "surplus": "a prune",
    "aged_surplus": "a prune",
    "threads_of_families": "a prune",
    "saves_of_families": "a prune",
    "sizes_of_families": "a prune",
    "sums_of_families": "statistics of a scope",
    "matches": "finds a checkpoint by its id alone",
    "changes": "the feed",
    "forget_tombstones": "housekeeping",
    "forget_moves": "housekeeping",
    "weights": "statistics",
    "facts": "statistics",
    "kinds": "statistics",
    "saved_in": "statistics",
    "totals": "statistics",
    "count_checkpoints": "verify",
    "portion_of_threads": "verify",
    "portion_of_checkpoints": "verify",
    "portion_of_entries": "verify",
    "portion_of_saves": "salvage",
    "portion_of_heads": "salvage",
    "names_of": "verify",
    "lost_heads": "verify",
    "headed_by": "verify",
    "count_segments": "verify",
    "segment_sizes": "compact",
    "drop_dictionary": "compact",
    "drop_gone_stretches": "an erasure",
    "drop_gone_threads": "an erasure",
    "count_strays": "verify",
    "rescue_family_threads": "copies of several families",
    "rescue_family_checkpoints": "copies of several families",
    "rescue_family_heads": "copies of several families",
    "rescue_family_entries": "copies of several families",
    "rescue_family_moves": "copies of several families",
    "indexed": "finds threads in the index by their numbers alone",
    "families_of": "finds the families of threads by their numbers alone",
    "stretches": "a search",
    "mark_threads": "threads of several families",
    "insert_stretches": "threads of several families",
    "outdated": "a search",
    "outdated_count": "a search",
    "is_outdated": "a search",
    "frequency": "a search",
    "gone": "a search",
    "scattered": "a search",
    "candidates": "a search",
    "reach": "a search",
    "looked_up": "a search",
}
REFUSED = {"save_each"}
# The last has those that are written otherwise for Citus.
FILES = ("shared.sql", "queries.sql", "search.sql", "citus.sql")
CREATED = re.compile(r"create (or replace )?function")
PARAMETER = re.compile(r"%\((\w+)\)s")


def _numbered(sql):
    """A statement with its parameters as PostgreSQL writes them."""
    names = list(dict.fromkeys(PARAMETER.findall(sql)))
    return PARAMETER.sub(lambda found: f"${names.index(found[1]) + 1}", sql)


TEXTS = {
    name: sql.decode() for file in FILES for name, sql in statements("hf", file).items()
}
MADE = (*MIGRATIONS, FUNCTIONS_FILE)
SCHEMA = [s for file in MADE for s in split(prepared(text_of(file), None))]
VIEWS = [sql.partition(" as\n")[2] for sql in SCHEMA if sql.startswith("create view")]
FUNCTIONS = {
    re.findall(r"hf\.(\w+)", sql)[0]: list(shards.statements_inside(sql))
    for sql in SCHEMA
    if CREATED.match(sql) and "language plpgsql" in sql
}
# Each with the name of its own or of the function that it is in, and its variables.
STATEMENTS = [(name, _numbered(sql), frozenset()) for name, sql in TEXTS.items()]
STATEMENTS += [(name, *inner) for name, all_ in FUNCTIONS.items() for inner in all_]


# --- what the statements say ----------------------------------------------------------


def test_every_statement_leads_to_one_shard():
    checked = [(name, shards.problems(sql, own), sql) for name, sql, own in STATEMENTS]

    wrong = [(name, why, sql) for name, why, sql in checked if why]

    assert [found for found in wrong if found[0] not in EVERYWHERE] == []
    assert {name for name, _, _ in wrong} == EVERYWHERE.keys()


def test_the_statements_inside_functions_are_among_them():
    hot = {
        "save",
        "append",
        "record",
        "settle",
        "state",
        "ancestors",
        "moves",
        "entries",
    }

    assert {name for name in hot if len(FUNCTIONS[name]) >= 2} == hot


@pytest.mark.parametrize("name", sorted(EVERYWHERE.keys() - REFUSED))
def test_what_asks_every_shard_can_be_answered_by_each_for_itself(name):
    asked = [s for of, s, own in STATEMENTS if of == name and shards.problems(s, own)]

    assert asked
    for sql in asked:
        assert not shards.locks_rows(sql)
        assert not shards.is_recursive(sql)
        assert not shards.is_limited_by_query(sql)
        assert shards.is_joined_by_key(sql)


@pytest.mark.parametrize("view", VIEWS)
def test_the_tables_of_a_view_are_joined_by_the_family(view):
    assert shards.is_joined_by_key(view)


THREAD, SEVERAL = "select 1 from hf.thread t ", "with recursive line (seq) as ("
WRONG = {
    "by another column": f"{THREAD} where t.number = $1",
    "by another table's column": (
        f"{THREAD} join hf.journal j on j.family = t.family where j.thread = $1"
    ),
    "one of two": f"{THREAD} join hf.move m on m.thread = t.number where t.family = $1",
    "by the directory": (
        f"{THREAD} join hf.directory d on d.family = t.family where d.name = $1"
    ),
    "beside the directory": (
        f"{THREAD} cross join hf.directory d where d.name = $1 and t.family = $2"
    ),
    "by a subquery": f"{THREAD} where t.family = (select family from place)",
    "of several": f"{THREAD} where t.family = any($1)",
    "or another": f"{THREAD} where t.family = $1 or t.number = $2",
    "not": f"{THREAD} where not t.family = $1",
    "in an outer join": (
        f"{THREAD} left join hf.move m on m.family = t.family and t.family = $1"
    ),
    "in a subquery of it": (
        f"{THREAD} where t.family = $1 and exists"
        " (select 1 from hf.move m where m.family = t.family)"
    ),
    "in a view": "select 1 from hf.thread_full t where t.number = $1",
    "step by step": (
        f"{SEVERAL} select $1::bigint union all select c.parent from line"
        " join hf.checkpoint c on c.family = line.family) select seq from line"
    ),
    "with a function": (
        "update hf.thread set head = 1 where family = $1 and hf.enter(true) is not null"
    ),
    "with a sequence": (
        "insert into hf.move (family, seq) values ($1, nextval('hf.seq'))"
    ),
    "inserted from a table": (
        "insert into hf.move (family, seq) select m.family, $1 from hf.move m"
        " where m.family = $2"
    ),
    "deleted with another": (
        "delete from hf.move m using hf.thread t where t.family = $1"
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_statement_that_may_need_several_shards_is_noticed(case):
    """The check itself: it must not let through what it is there to find."""
    assert shards.problems(WRONG[case])


# --- what the planner makes of them ---------------------------------------------------

READS = {
    "thread_by_name": {"name": "a"},
    "obstacle": {"name": "a", "id": "x"},
    "state": {"name": "a", "known": None},
    "line_length": {"thread": "a"},
    "moves": {"name": "a", "before": 1000, "limit": 10},
    "entries": {"name": "a"},
    "entries_of": {"name": "a", "checkpoint": ""},
    "entries_from": {"name": "a", "checkpoint": "", "first": "a", "last": "z"},
    "entry_of": {"name": "a", "checkpoint": "", "key": "k"},
    "ancestors": {
        "family": None, "seq": None, "thread": "a", "depth": 9, "skip": 0,
        "down_to_step": 0, "from_step": 9,
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def divided():
    """A store whose tables have four parts; the planner leaves out parts as Citus does.

    Both go by the constants that the planner knows of each table.
    """
    with databases.place(servers.shared(servers.NAMES[-1])) as place:
        with place.open(partitions=4) as store:
            for n in range(2):
                store.thread("a").save({"messages": ["x" * 500, n]})
            store.thread("a").record("k", 1)
        yield place


def _plans(place, sql, values):
    """The plans of a statement and of all that it runs inside."""
    with place.connect() as connection:
        heard = []
        connection.add_notice_handler(lambda told: heard.append(told.message_primary))
        connection.execute("load 'auto_explain'; set auto_explain.log_min_duration = 0")
        connection.execute("set auto_explain.log_nested_statements = on")
        connection.execute("set plan_cache_mode = force_custom_plan")
        connection.execute("set client_min_messages = log")
        connection.execute(sql.replace("hf.", f"{place.schema}."), values)
    return "\n".join(heard).partition("Query Text")[2]


@pytest.mark.parametrize("name", READS)
def test_the_planner_leaves_out_every_part_but_one(divided, name):
    plans = _plans(divided, TEXTS[name], READS[name])

    parts = set(
        re.findall(r" on (?:thread|checkpoint|segment|journal|move)_(\d)", plans)
    )
    assert len(parts) == 1


# --- the recipe -----------------------------------------------------------------------

# What the recipe calls on Citus, where it is too, noting down what it is called for.
STAND_IN = """
set allow_system_table_mods = on;
create table hf.pg_dist_partition (
    logicalrelid regclass, partkey text, colocate_with text);
create function hf.create_distributed_table(
    table_name regclass, distribution_column text,
    distribution_type text default 'hash', colocate_with text default 'default'
) returns void language sql as $$
    insert into hf.pg_dist_partition values ($1, $2, $4) $$;
create function hf.create_reference_table(table_name regclass) returns void
language sql as $$ insert into hf.pg_dist_partition values ($1, null, null) $$;
"""


@pytest.fixture
def place():
    with databases.place(servers.shared(servers.NAMES[-1])) as place:
        yield place


@pytest.fixture
def url():
    """A database of its own."""
    with databases.database(servers.shared(servers.NAMES[-1])) as url:
        yield url


def _search(store):
    hello = [{"role": "user", "content": "hello"}]
    store.conversations.create("c", messages=hello)
    return len(store.search("hello"))


@pytest.mark.parametrize("searched", ["before", "after"])
def test_the_recipe_distributes_every_table_by_what_its_statements_name(url, searched):
    place, extension = databases.Place(url), databases.Place(url, "pg_catalog")
    with place.open() as store:
        extension.run(STAND_IN)
        if searched == "before":
            assert _search(store) == 1

        citus.apply_recipe(place.url, place.schema)

        if searched == "after":
            with place.open() as other:
                assert _search(other) == 1
        found = extension.run(
            "select logicalrelid::oid, partkey, colocate_with from hf.pg_dist_partition"
        )
        tables = dict(
            place.run(
                "select oid, relname from pg_class where relkind = 'r'"
                " and relnamespace = to_regnamespace(%s)",
                (place.schema,),
            )
        )
    threads = f"{place.schema}.thread"
    groups = {tables.pop(oid): (column, group) for oid, column, group in found}
    assert tables == {}
    assert {name: column for name, (column, _) in groups.items() if column} == {
        name: column for name, column in shards.COLUMN.items() if name in groups
    }
    assert {name for name, (_, group) in groups.items() if group == threads} == (
        groups.keys() - {"thread", "directory", "setting", "migration", "search_state"}
    )


def test_a_server_without_citus_says_so(place):
    place.open().close()

    with pytest.raises(psycopg.errors.UndefinedFunction):
        citus.apply_recipe(place.url, place.schema)
