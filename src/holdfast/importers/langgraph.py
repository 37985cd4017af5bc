"""The databases of LangGraph's savers, in SQLite files and on PostgreSQL servers.

They are recognised here. What is in them, the writes of tasks beside checkpoints, is
taken over by the adapter, which knows LangGraph's types.
"""

from __future__ import annotations

from holdfast._engine.context import Context
from holdfast.importers._report import Report
from holdfast.importers._sqlite import has_columns
from holdfast.importers._write import Progress

FORMAT = "langgraph"


def is_address(path: object) -> bool:
    """Whether it names a server, and no file."""
    return isinstance(path, str) and path.startswith(("postgres://", "postgresql://"))


def recognises(path: str) -> bool:
    """Whether it is an address, or a SQLite database with the table of a saver."""
    names = {"thread_id", "checkpoint_ns", "checkpoint_id", "parent_checkpoint_id"}
    return is_address(path) or has_columns(path, "checkpoints", names)


async def import_into(
    context: Context, path: str, *, dry_run: bool, progress: Progress | None
) -> Report:
    """Put all checkpoints and writes of another saver into a store."""
    # Imported here: it needs LangGraph, which few imports do.
    from holdfast.adapters.langgraph import _import  # noqa: PLC0415
    from holdfast.adapters.langgraph._types import Types  # noqa: PLC0415

    return await _import.import_from(
        context, Types(), path, dry_run=dry_run, progress=progress
    )
