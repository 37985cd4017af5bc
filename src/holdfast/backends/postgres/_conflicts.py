"""What stands in the way of a write, said so that the caller can go on."""

from __future__ import annotations

import re

from psycopg import errors

from holdfast._port import Write
from holdfast.backends._sql.conflicts import refusal, taken_id, taken_segment
from holdfast.backends.postgres._rows import CODEC
from holdfast.backends.postgres._statements import Statements
from holdfast.errors import Conflict

_KEY = re.compile(r"\b(checkpoint|segment)_\w+")


async def conflict(db: Statements, write: Write, code: str = "head_moved") -> Conflict:
    """Why a write cannot be made."""
    draft = write.checkpoint
    found = await db.row("obstacle", name=write.thread, id=draft.id if draft else None)
    id_taken, *columns = found or (False,)
    thread = CODEC.thread(tuple(columns)) if columns else None
    return refusal(write, thread, id_taken=id_taken, code=code)


def taken(write: Write, error: errors.UniqueViolation) -> Conflict:
    """Another transaction took a number, name or id that a write wanted."""
    table = _table(error)
    if write.checkpoint is not None and table.startswith("checkpoint"):
        return taken_id(write.thread, write.checkpoint.id)
    if table.startswith("segment"):
        return taken_segment(write.thread)
    return Conflict(
        f"thread {write.thread!r} is being changed by another transaction;"
        " repeat the change",
        thread=write.thread,
    )


def _table(error: errors.UniqueViolation) -> str:
    """The table of a key that is taken, or a partition, which is named after it.

    Citus passes on what a shard said without the field; the message, in any language,
    has the name of the key, which begins with that of its table.
    """
    if error.diag.table_name:
        return error.diag.table_name
    found = _KEY.search(error.diag.message_primary or "")
    return found[0] if found else ""


def outdated_view() -> Conflict:
    """A caller's transaction has a view that is older than what it wants to change."""
    return Conflict(
        "another transaction changed this since yours began; roll back and repeat it",
        code="serialization",
    )
