"""How a store connects, and what was found out about the way to the server."""

from __future__ import annotations

import msgspec


class Pooler(msgspec.Struct):
    """Whether a pooler between us and the server shares connections.

    Then each transaction may run on another connection: nothing can be prepared, set
    for the session or listened for.
    """

    in_use: bool = False


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How to connect: the address, the number of connections, the timeout."""

    conninfo: str
    smallest: int = 1
    largest: int = 10
    timeout: float = 5.0
    read_only: bool = False
    durable: bool = True
    partitions: int | None = None
    pooler: Pooler = msgspec.field(default_factory=Pooler)

    def __repr__(self) -> str:
        """Nothing of the address, which may have a password."""
        return f"<Settings, pool {self.smallest} to {self.largest}>"
