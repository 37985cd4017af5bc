"""Holdfast keeps the state of AI agents: every step saved, any step restorable."""

from holdfast._backend import Facts, Pruned
from holdfast._doors import open, open_async  # noqa: A004 - meant as holdfast.open
from holdfast._records import (
    Change,
    Checkpoint,
    Entry,
    Move,
    Page,
    ThreadRecord,
)
from holdfast._store import AsyncStore, Store
from holdfast._thread import AsyncThread, Thread
from holdfast.diff import Diff
from holdfast.errors import (
    Busy,
    Closed,
    Conflict,
    Corrupt,
    FormatMismatch,
    HoldfastError,
    NotFound,
    Unstorable,
    Unsupported,
)
from holdfast.retention import Retention, Thin

__all__ = [
    "AsyncStore",
    "AsyncThread",
    "Busy",
    "Change",
    "Checkpoint",
    "Closed",
    "Conflict",
    "Corrupt",
    "Diff",
    "Entry",
    "Facts",
    "FormatMismatch",
    "HoldfastError",
    "Move",
    "NotFound",
    "Page",
    "Pruned",
    "Retention",
    "Store",
    "Thin",
    "Thread",
    "ThreadRecord",
    "Unstorable",
    "Unsupported",
    "open",
    "open_async",
]

__version__ = "0.1.0"
