"""Holdfast's default backend: one SQLite file, or a private database in memory.

One connection writes; concurrent callers share its transactions, so that they share
the fsync. Readers have connections of their own. All of it is blocking: the async API
calls it from worker threads.
"""

from holdfast.backends.sqlite._backend import ABILITIES, SqliteBackend
from holdfast.backends.sqlite._connection import (
    FORMAT,
    MEMORY,
    check_whole,
    connect,
    page_checksums,
    prepare,
    snapshot,
    transaction,
    translated,
    translation,
)
from holdfast.backends.sqlite._database import Database
from holdfast.backends.sqlite._hooks import PAGE, Hooks, Subject
from holdfast.backends.sqlite._log_size import LogSize
from holdfast.backends.sqlite._search import reset_search
from holdfast.backends.sqlite._writer_queue import LockFile, announced

__all__ = [
    "ABILITIES",
    "FORMAT",
    "MEMORY",
    "PAGE",
    "Database",
    "Hooks",
    "LockFile",
    "LogSize",
    "SqliteBackend",
    "Subject",
    "announced",
    "check_whole",
    "connect",
    "page_checksums",
    "prepare",
    "reset_search",
    "snapshot",
    "transaction",
    "translated",
    "translation",
]
