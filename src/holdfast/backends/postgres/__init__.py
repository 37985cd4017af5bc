"""Holdfast on PostgreSQL, and what speaks its protocol: many machines, one store.

Every save on a known head is one statement and one round trip.
"""

from holdfast.backends.postgres._backend import (
    PostgresBackend,
    open_blocking,
    open_native,
)

__all__ = ["PostgresBackend", "open_blocking", "open_native"]
