"""Binding a role of the database to a scope."""

from __future__ import annotations

import psycopg
from psycopg import sql

from holdfast._values.scope_name import scope_prefix
from holdfast.backends._sql.rows import Row
from holdfast.backends.postgres._connections import checked_conninfo
from holdfast.backends.postgres._errors import Unreached, broken, translated
from holdfast.backends.postgres._migrations import split
from holdfast.backends.postgres._statements import checked_schema, text_of, within
from holdfast.errors import Conflict, NotFound

VIEWS = ("thread_full", "checkpoint_full", "thread_state")
READ = (*VIEWS, "migration", "tenant")
SEQUENCES = ("seq", "number")
# The columns that a bound role may update. Family and number are left out: with others
# a row would belong to another scope.
CHANGED = {
    "directory": ("deleted_at",),
    "thread": (
        "name", "kind", "owner", "agent", "metadata", "head", "changed", "updated_at",
        "forked_thread", "forked_checkpoint", "deleted_at", "packed_to",
    ),
    "checkpoint": ("parent", "parent_id", "label", "tags", "link", "checksum"),
    "segment": (),
    "journal": ("seq", "value", "recorded_at", "checksum"),
    "move": ("moved_at",),
    "setting": ("value",),
}  # fmt: skip

# Statements then use PostgreSQL's operators and functions under any path of the owner.
_PATH = "select set_config('search_path', 'pg_catalog', true)"
_IS_SECURED = "select to_regprocedure(%s) is not null"
_POLICIES = "select policyname, tablename from pg_policies where schemaname = %s"
_IS_ROLE = "select exists (select from pg_roles where rolname = %s)"
_BIND = """
insert into hf.tenant (role, prefix) values (%s, %s)
on conflict (role) do update set prefix = excluded.prefix
"""
_BOUND = "select t.role from hf.tenant t join pg_roles r on r.rolname = t.role"
# Rows that a bound role could make before policies forbade it: a thread in the family
# of another scope, and a name that leads to the thread of another.
_ASTRAY = r"""
select min(t.name), max(t.name) from hf.thread t
group by t.family
having count(distinct left(t.name, -strpos(reverse(t.name), E'\x1f'))) > 1
union all
select d.name, t.name from hf.directory d
join hf.thread t on t.family = d.family and t.number = d.number
where d.name <> t.name
limit 1
"""


def bind_role(
    url: str, role: str, scope: str | None, *, schema: str = "holdfast"
) -> None:
    """Let a role of the database see one scope of a store, whatever it runs.

    ``url`` is for the owner of the tables; the store and the role must exist. From the
    first call on, row-level security holds back every other role: one that is to see
    all, such as a second worker, is bound to the scope ``None``. Call it again
    for one role, which is for all, after an upgrade that changed the format of the
    store, or of a version that did not hold the families of a scope apart.
    """
    prefix = "" if scope is None else scope_prefix(scope)
    within_schema = checked_schema(schema)
    with _connected(url) as connection, translated(connection):
        connection.execute(_PATH)
        [(is_role,)] = connection.execute(_IS_ROLE, [role]).fetchall()
        if not is_role:
            raise NotFound(f"there is no role {role!r}; make it with create role")
        astray = _secure(connection, within_schema)
        connection.execute(within(within_schema, _BIND), [role, prefix])
        for (bound,) in connection.execute(within(within_schema, _BOUND)).fetchall():
            for grant in _grants(within_schema, bound):
                connection.execute(grant)
    for first, second in astray:  # after the commit, so that it is secure from now on
        raise Conflict(
            f"threads {first!r} and {second!r} are of two scopes and share what is"
            " stored; delete the one that does not belong there",
            code="mixed_scopes",
            thread=first,
        )


def _connected(url: str) -> psycopg.Connection:
    try:
        return psycopg.connect(checked_conninfo(url))
    except psycopg.Error as error:
        raise broken(Unreached(str(error).strip())) from error


def _secure(connection: psycopg.Connection, schema: str) -> list[Row]:
    """Make the policies, unless the current ones exist.

    Returns threads that roles have put into other scopes under older policies.
    """
    astray: list[Row] = []
    connection.execute(within(schema, "lock table hf.migration in exclusive mode"))
    newest = f"{schema}.sees_family(bigint)"
    if connection.execute(_IS_SECURED, [newest]).fetchall() != [(True,)]:
        for policy, table in connection.execute(_POLICIES, [schema]).fetchall():
            connection.execute(f"drop policy {policy} on {schema}.{table}".encode())
        for statement in split(text_of("roles.sql")):
            connection.execute(within(schema, statement))
        astray = connection.execute(within(schema, _ASTRAY)).fetchall()
    for view in VIEWS:  # a store of an older version has them without
        text = f"alter view hf.{view} set (security_invoker = true)"
        connection.execute(within(schema, text))
    return astray


def _grants(schema: str, role: str) -> list[bytes]:
    """The statements that grant a role its rights, and revoke all others."""
    quoted = sql.Identifier(role).as_string()
    revoked = [f"update on {schema}.{table}" for table in CHANGED]
    granted = [f"usage on schema {schema}"]
    granted += [f"select, insert, delete on {schema}.{table}" for table in CHANGED]
    granted += [
        f"update ({', '.join(columns)}) on {schema}.{table}"
        for table, columns in CHANGED.items()
        if columns
    ]
    granted += [f"select on {schema}.{name}" for name in READ]
    granted += [f"usage, select on sequence {schema}.{name}" for name in SEQUENCES]
    return [
        *(f"revoke {right} from {quoted}".encode() for right in revoked),
        *(f"grant {right} to {quoted}".encode() for right in granted),
    ]
