"""Binding a role of the database to a scope."""

from __future__ import annotations

import psycopg
from psycopg import sql

from holdfast._values.scope_name import scope_prefix
from holdfast.backends.postgres._migrations import split
from holdfast.backends.postgres._statements import checked_schema, text_of, within
from holdfast.errors import NotFound

TABLES = ("directory", "thread", "checkpoint", "segment", "journal", "move", "setting")
VIEWS = ("thread_full", "checkpoint_full", "thread_state")
READ = (*VIEWS, "migration", "tenant")
SEQUENCES = ("seq", "number")

_IS_SECURED = "select to_regclass(%s) is not null"
_IS_ROLE = "select exists (select from pg_roles where rolname = %s)"
_BIND = """
insert into hf.tenant (role, prefix) values (%s, %s)
on conflict (role) do update set prefix = excluded.prefix
"""


def bind_role(
    url: str, role: str, scope: str | None, *, schema: str = "holdfast"
) -> None:
    """Let a role of the database see one scope of a store, whatever it runs.

    ``url`` is for the owner of the tables; the store and the role must exist. From the
    first call on, row-level security holds back every other role: one that is to see
    all, such as a second worker, is bound to the scope ``None``. Call it again for
    every role after an upgrade that changed the format of the store.
    """
    prefix = "" if scope is None else scope_prefix(scope)
    within_schema = checked_schema(schema)
    with psycopg.connect(url) as connection:
        [(is_role,)] = connection.execute(_IS_ROLE, [role]).fetchall()
        if not is_role:
            raise NotFound(f"there is no role {role!r}; make it with create role")
        _secure(connection, within_schema)
        connection.execute(within(within_schema, _BIND), [role, prefix])
        for grant in _grants(within_schema, role):
            connection.execute(grant)


def _secure(connection: psycopg.Connection, schema: str) -> None:
    """Make the policies, unless they are there."""
    connection.execute(within(schema, "lock table hf.migration in exclusive mode"))
    found = connection.execute(_IS_SECURED, [f"{schema}.tenant"]).fetchall()
    if found != [(True,)]:
        for statement in split(text_of("roles.sql")):
            connection.execute(within(schema, statement))
    for view in VIEWS:  # a store of an older version has them without
        text = f"alter view hf.{view} set (security_invoker = true)"
        connection.execute(within(schema, text))


def _grants(schema: str, role: str) -> list[bytes]:
    grants = [f"usage on schema {schema}"]
    grants += [f"select, insert, update, delete on {schema}.{n}" for n in TABLES]
    grants += [f"select on {schema}.{name}" for name in READ]
    grants += [f"usage, select on sequence {schema}.{name}" for name in SEQUENCES]
    quoted = sql.Identifier(role).as_string()
    return [f"grant {grant} to {quoted}".encode() for grant in grants]
