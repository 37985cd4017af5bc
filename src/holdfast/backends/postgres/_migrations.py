"""Makes the tables or brings older ones up to date; many programs may try at once."""

from __future__ import annotations

import re

from holdfast.backends.postgres._session import Session
from holdfast.backends.postgres._statements import text_of, within
from holdfast.errors import FormatMismatch, NotFound

# Each file brings the schema to the format of its place in this list.
MIGRATIONS = (
    "0001_initial.sql",
    "0002_blocks.sql",
    "0003_speed.sql",
    "0004_graves.sql",
    "0005_files.sql",
    "0006_citus.sql",
    "0007_writers.sql",
)
FORMAT = len(MIGRATIONS)
FUNCTIONS = "functions.sql"

_LOCK = "select pg_advisory_xact_lock(hashtext('hf.migration'))"
# Under any default: after the lock we must see the tables of another program.
_VIEW = "set transaction isolation level read committed"
_PATH = "set local search_path = pg_catalog"
# The catalogs are read, because `to_regclass` may answer from a cache that is not up to
# date.
_SCHEMA = "select exists (select 1 from pg_namespace where nspname = 'hf')"
_IS_BOOKED = """
select exists (
    select 1 from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = 'hf' and c.relname = 'migration')
"""
# Run only if the schema is missing: a role without the right may have been given one.
_NEW_SCHEMA = "create schema hf"
_BOOK = """
create table hf.migration (
    format int primary key, applied_at timestamptz not null default now())
"""
# The views and functions that a migration drops, as names quoted for a statement.
_VIEWS = """
select c.oid::regclass::text
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = 'hf' and c.relname = %(name)s and c.relkind = 'v'
"""
_SIGNATURES = """
select p.oid::regprocedure::text
from pg_proc p join pg_namespace n on n.oid = p.pronamespace
where n.nspname = 'hf' and p.proname = %(name)s
"""
_CREATED = re.compile(r"^create (view|function) hf\.(\w+)", re.MULTILINE)
_ENTRY = "insert into hf.migration (format) values (%(format)s)"


async def migrate(session: Session, schema: str, *, partitions: int | None) -> None:
    """Bring a schema to the current format."""
    if await found_format(session, schema) == FORMAT:
        return
    async with session.transaction():
        await session.rows(_VIEW.encode(), {})
        await session.rows(_PATH.encode(), {})
        await session.rows(within(schema, _LOCK), {})
        present = await found_format(session, schema)
        if present == FORMAT:  # another program was first
            return
        if present:
            await _drop_functions(session, schema)
        else:
            if await session.rows(within(schema, _SCHEMA), {}) != [(True,)]:
                await session.rows(within(schema, _NEW_SCHEMA), {})
            await session.rows(within(schema, _BOOK), {})
        for number, file in enumerate(MIGRATIONS[present:], present + 1):
            for statement in split(prepared(text_of(file), partitions)):
                await session.rows(within(schema, statement), {})
            await session.rows(within(schema, _ENTRY), {"format": number})
        functions = text_of(FUNCTIONS).replace(_FORMAT_MARK, str(FORMAT))
        for sql in split(functions):
            await session.rows(within(schema, sql), {})


async def _drop_functions(session: Session, schema: str) -> None:
    """Drop the views and functions that are about to be made, in any form."""
    for kind, name in _CREATED.findall(text_of(FUNCTIONS)):
        find = _VIEWS if kind == "view" else _SIGNATURES
        for (old,) in await session.rows(within(schema, find), {"name": name}):
            drop = f"drop {kind} if exists {old} cascade"
            await session.rows(within(schema, drop), {})


async def found_format(session: Session, schema: str) -> int:
    """The format of a schema, 0 if it is not there; refuses one that is too new."""
    if await session.rows(within(schema, _IS_BOOKED), {}) != [(True,)]:
        return 0
    highest = within(schema, "select coalesce(max(format), 0) from hf.migration")
    [(found,)] = await session.rows(highest, {})
    if found > FORMAT:
        raise FormatMismatch(
            f"schema {schema!r} has format {found}, newer than {FORMAT};"
            " upgrade holdfast"
        )
    return int(found)


async def check(session: Session, schema: str) -> None:
    """Refuse to read a schema that is missing or not up to date."""
    if await found_format(session, schema) != FORMAT:
        raise NotFound(
            f"schema {schema!r} holds no store of this version;"
            " open it for writing first"
        )


_PARTITIONED = "/*partitioned*/"
_FORMAT_MARK = "/*format*/0"
_TABLE = re.compile(
    r"(?P<whole>create table hf\.(?P<name>\w+) \((?:(?!\n\)).)*\n\))"
    r" /\*partitioned\*/(?P<options>[^;]*);",
    re.DOTALL,
)


def prepared(sql: str, partitions: int | None) -> str:
    """A migration with its tables whole, or in so many partitions by family."""
    if partitions is None:
        return sql.replace(_PARTITIONED, "")
    return _TABLE.sub(lambda table: _divided(table, partitions), sql)


def _divided(table: re.Match[str], partitions: int) -> str:
    whole, name, options = table["whole"], table["name"], table["options"]
    parts = "".join(
        f"\ncreate table hf.{name}_{part} partition of hf.{name}"
        f" for values with (modulus {partitions}, remainder {part}){options};"
        for part in range(partitions)
    )
    return f"{whole} partition by hash (family);{parts}"


def split(sql: str) -> list[str]:
    """The statements of a file; a semicolon inside a function body ends none."""
    statements: list[str] = []
    inside = False
    current: list[str] = []
    for line in sql.splitlines():
        if line.startswith("--"):
            continue
        current.append(line)
        inside ^= line.count("$$") % 2 == 1
        if line.rstrip().endswith(";") and not inside:
            statements.append("\n".join(current).strip().rstrip(";"))
            current = []
    return statements
