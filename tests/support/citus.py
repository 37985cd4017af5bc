"""Distributing the tables of a store where a test finds Citus."""

from __future__ import annotations

import re

import psycopg

from support.folders import DOCS


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
