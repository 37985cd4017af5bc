"""Recognises the databases of LangGraph's own savers, in SQLite and PostgreSQL.

The LangGraph adapter reads them, because it knows LangGraph's types.
"""

from __future__ import annotations

from holdfast.importers._sqlite import has_columns

FORMAT = "langgraph"


def is_address(path: object) -> bool:
    """True if a path is the address of a PostgreSQL server instead of a file."""
    return isinstance(path, str) and path.startswith(("postgres://", "postgresql://"))


def recognises(path: str) -> bool:
    """True if a path is an address, or a SQLite database with a saver's table."""
    names = {"thread_id", "checkpoint_ns", "checkpoint_id", "parent_checkpoint_id"}
    return is_address(path) or has_columns(path, "checkpoints", names)
