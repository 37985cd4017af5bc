"""Places on PostgreSQL for tests, opened by the sync or the async API."""

from __future__ import annotations

import contextlib
import itertools
import uuid

import psycopg

import holdfast
from holdfast.testing import blocking
from support import citus, servers


def open_awaited(url, **options):
    return blocking(holdfast.open_async(url, **options))


DOORS = {"blocking": holdfast.open, "awaited": open_awaited}
# Every server that is there and both APIs, but not each server with each API: that
# takes twice as long and has never found anything more.
_SERVERS = servers.NAMES * 2 if len(servers.NAMES) == 1 else servers.NAMES
CORNERS = list(zip(_SERVERS, itertools.cycle(DOORS), strict=False))


class Place:
    """A schema of its own on a server, opened by the sync or the async API."""

    def __init__(self, url, schema=None):
        self.url = url
        self.schema = schema or f"place_{uuid.uuid4().hex[:12]}"

    def open(self, door="blocking", **options):
        return DOORS[door](self.url, **({"schema": self.schema} | options))

    def connect(self, **options):
        """A connection of the test's own."""
        return psycopg.connect(self.url, **options)

    def run(self, sql, values=None):
        """The rows of a statement; ``hf`` in it stands for the schema."""
        with self.connect(autocommit=True) as connection:
            cursor = connection.execute(sql.replace("hf.", f"{self.schema}."), values)
            return cursor.fetchall() if cursor.description else []


@contextlib.contextmanager
def place(url):
    found = Place(url)
    try:
        yield found
    finally:
        servers.drop_schema(url, found.schema)


def emptied(url):
    """A schema that is emptied between tests, which is faster than a new one.

    Where there is Citus, its tables are distributed.
    """
    name = f"test_{uuid.uuid4().hex}"
    holdfast.open(url, schema=name).close()
    if citus.is_there(url):
        citus.apply_recipe(url, name)
    return contextlib.closing(servers.Emptied(url, name))


@contextlib.contextmanager
def database(url, name=None):
    """The address of a database of its own: its address alone leads to a store."""
    name = name or f"base_{uuid.uuid4().hex[:12]}"
    _administer(url, f'create database "{name}"')
    try:
        yield f"{url.rpartition('/')[0]}/{name}"
    finally:
        _administer(url, f'drop database "{name}" with (force)')


def _administer(url, command):
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(command)


TABLES = ("directory", "thread", "checkpoint", "segment", "journal", "move", "setting")


class Original:
    """A store as a call finds it, put back in no time."""

    def __init__(self, url, build_it):
        self.place = Place(url, "holdfast")
        build_it(url)
        self.place.run("create schema original")
        self.columns = {table: self._written_columns(table) for table in TABLES}
        for table in TABLES:
            self.place.run(f"create table original.{table} as table hf.{table}")
        self.numbers = {
            name: self.place.run(f"select last_value from hf.{name}")[0][0]
            for name in ("seq", "number")
        }

    def _written_columns(self, table):
        """The columns of a table that the server does not compute."""
        [(columns,)] = self.place.run(
            "select string_agg(attname, ', ') from pg_attribute"
            f" where attrelid = 'hf.{table}'::regclass and attnum > 0"
            " and attgenerated = '' and not attisdropped"
        )
        return columns

    def restore(self):
        commands = []
        for table, columns in self.columns.items():
            insert = f"insert into holdfast.{table} ({columns})"
            commands.append(f"delete from holdfast.{table}")
            commands.append(f"{insert} select {columns} from original.{table}")
        commands += [
            f"select setval('holdfast.{name}', {last})"
            for name, last in self.numbers.items()
        ]
        with self.place.connect(autocommit=True) as connection:
            connection.execute(";".join(commands))


def only_connection(connections):
    """The connection of a pool of one: idle in the pool, or kept beside it."""
    [found] = connections._pool._pool
    return found
