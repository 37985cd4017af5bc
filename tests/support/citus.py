"""Distributing the tables of a store where a test finds Citus."""

from __future__ import annotations

import re

import psycopg

from inner.postgres import AT_ONCE
from support.folders import DOCS

PARAMETER = re.compile(r"%\((\w+)\)s")
TYPES = (
    "select parameter_types::text[] from pg_prepared_statements where name = 'asked'"
)
# Where 0 will not do.
NOTHING = {"durable": str(AT_ONCE), "checkpoints": "[]", "limit": "1", "stretch": "1"}


def is_there(url: str) -> bool:
    """Whether a database has the extension."""
    with psycopg.connect(url, autocommit=True) as connection:
        asked = "select 1 from pg_extension where extname = 'citus'"
        return bool(connection.execute(asked).fetchall())


def apply_recipe(url: str, schema: str) -> None:
    """Distribute the tables of a store as docs/postgres.md says."""
    page = (DOCS / "postgres.md").read_text()
    [recipe] = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(recipe.replace("support.", f"{schema}."))


def problem(connection: psycopg.Connection, sql: str) -> str | None:
    """Why a server does not plan and run a statement, with values that find nothing."""
    names = list(dict.fromkeys(PARAMETER.findall(sql)))
    numbered = PARAMETER.sub(lambda found: f"${names.index(found[1]) + 1}", sql)
    with connection.transaction(force_rollback=True):
        try:
            with connection.transaction():
                connection.execute(f"prepare asked as {numbered}".encode())
                [(types,)] = connection.execute(TYPES).fetchall()
                values = (_nothing(n, t) for n, t in zip(names, types, strict=True))
                call = (
                    f"execute asked ({', '.join(values)})" if names else "execute asked"
                )
                connection.execute(call.encode())
        except psycopg.errors.FeatureNotSupported as error:
            return str(error)
        finally:
            connection.execute("deallocate all")
    return None


def _nothing(name: str, type_name: str) -> str:
    value = NOTHING.get(name) or ("{}" if type_name.endswith("[]") else "0")
    return f"'{value}'::{type_name}"
