"""The attributes of a store's database, as the conventions name them.

They never hold a user name, a password or an option of an address.
"""

from __future__ import annotations

import contextlib
from urllib.parse import parse_qs, unquote, urlsplit

from holdfast._api.address import StoreAddress

# Systems that the conventions do not name get a name that begins with ours.
SYSTEMS = {"dir": "holdfast.directory"}
MEMORY = ":memory:"


def attributes_of(address: StoreAddress, schema: str) -> dict[str, str | int]:
    """The attributes that all spans and metrics of a store have in common."""
    system = SYSTEMS.get(address.scheme, address.scheme)
    found: dict[str, str | int] = {"db.system.name": system}
    if address.scheme == "postgresql":
        return found | _server(address.name, schema)
    if address.scheme in {"sqlite", "dir"}:
        found["db.namespace"] = address.name
    return found


def _server(url: str, schema: str) -> dict[str, str | int]:
    parts = urlsplit(url)
    options = parse_qs(parts.query)
    database = unquote(parts.path.strip("/")) or options.get("dbname", [""])[0]
    found: dict[str, str | int] = {"db.namespace": f"{database}|{schema}".lstrip("|")}
    host = parts.hostname or options.get("host", [""])[0]
    if host:
        found["server.address"] = host
    # An address of several servers has no port that could be read as a number.
    with contextlib.suppress(ValueError):
        port = parts.port or int(options.get("port", ["0"])[0])
        found |= {"server.port": port} if port else {}
    return found


def log_of(address: StoreAddress) -> str | None:
    """The file of the write-ahead log, ``None`` for a store without one."""
    if address.scheme != "sqlite" or address.name == MEMORY:
        return None
    return f"{address.name}-wal"
