"""Which servers can keep a store."""

from __future__ import annotations

OLDEST = 15
# Servers that are spoken to like PostgreSQL, by a part of their `version()`, and what
# they lack. Every save takes a lock that the readers of the feed see; without it they
# would miss changes.
OTHERS = {
    "CockroachDB": ("CockroachDB", "advisory locks that pg_locks shows, and NOTIFY"),
    "-YB-": ("YugabyteDB", "advisory locks that pg_locks shows"),
}


def refusal(number: int, version: str) -> str | None:
    """Why a server cannot keep a store, ``None`` if it can.

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
