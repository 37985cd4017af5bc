"""The server of a store: how it is reached, and whether it can keep a store."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.errors import Unsupported


class Pooler(msgspec.Struct):
    """``in_use`` if a pooler between us and the server shares connections.

    Then each transaction may run on another connection: nothing can be prepared, set
    for the session or listened for.
    """

    in_use: bool = False


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The way to a store: the address, the number of connections, the timeout."""

    conninfo: str
    smallest: int = 1
    largest: int = 10
    timeout: float = 5.0
    read_only: bool = False
    durable: bool = True
    partitions: int | None = None
    pooler: Pooler = msgspec.field(default_factory=Pooler)

    def __repr__(self) -> str:
        """Leave out the address, which may have a password."""
        return f"<Settings, pool {self.smallest} to {self.largest}>"


OLDEST = 15
# Servers that are spoken to like PostgreSQL, by a part of their `version()`, and what
# they lack. Every save takes a lock that the readers of the feed see; without it they
# would miss changes.
OTHERS = {
    "CockroachDB": ("CockroachDB", "advisory locks that pg_locks shows, and NOTIFY"),
    "-YB-": ("YugabyteDB", "advisory locks that pg_locks shows"),
}


def refusal(number: int, version: str) -> str | None:
    """The reason for which a server cannot keep a store, ``None`` if it can.

    ``number`` is its ``server_version_num``, such as 150004, and ``version`` its
    ``version()``; other servers give the number of the PostgreSQL they resemble.
    """
    advice = f"use PostgreSQL {OLDEST} or newer"
    for part, (name, lack) in OTHERS.items():
        if part in version:
            return f"the server is {name}, which lacks {lack}; {advice}"
    if number < OLDEST * 10_000:
        return f"the server is PostgreSQL {number // 10_000}; {advice}"
    return None


# Sets the path, so that our statements call PostgreSQL's functions and operators and
# not those of another schema. Behind a pooler, where other programs share the process,
# it sets nothing: the process then differs from the one that the connection reports.
FIX_PATH = (
    "select pg_catalog.set_config('search_path', 'pg_catalog', false)"
    " where pg_catalog.pg_backend_pid() operator(pg_catalog.=) %s"
)
PATH = b"select pg_catalog.current_schemas(true)::pg_catalog.text[]"


def check_path(path: Sequence[str]) -> None:
    """Refuse a search path that looks into another schema before pg_catalog."""
    # Temporary schemas come first, but hold tables only, no functions or operators.
    first = next((name for name in path if not name.startswith("pg_temp_")), None)
    if first != "pg_catalog":
        raise Unsupported(
            f"names are searched for in the schema {first!r} before pg_catalog, so that"
            " a statement may mean something else; put pg_catalog first in search_path,"
            " or leave it out",
            code="search_path",
        )


def read_only(*, is_standby: bool) -> Unsupported:
    """The error where nothing can be written."""
    why = (
        "the server is a standby; name the primary"
        if is_standby
        else "the server lets this role only read (default_transaction_read_only); have"
        " that changed"
    )
    return Unsupported(f"{why}, or open with read_only=True", code="read_only")
