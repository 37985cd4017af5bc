"""Holdfast on PostgreSQL and compatible servers: many machines, one store.

Every save on a known head is one statement and one round trip.
"""

from holdfast.backends.postgres._backend import (
    PostgresBackend,
    open_blocking,
    open_native,
)
from holdfast.backends.postgres._roles import bind_role

__all__ = ["PostgresBackend", "bind_role", "open_blocking", "open_native"]
