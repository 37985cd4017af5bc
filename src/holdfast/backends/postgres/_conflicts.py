"""What stands in the way of a write, told so that the caller can go on."""

from __future__ import annotations

from psycopg import errors

from holdfast._port import Write
from holdfast._values.records import Checkpoint
from holdfast.backends.postgres import _rows
from holdfast.backends.postgres._session import Statements
from holdfast.errors import Conflict


async def conflict(db: Statements, write: Write, code: str = "head_moved") -> Conflict:
    """What stands in the way of a write."""
    name = write.thread
    draft = write.checkpoint
    found = await db.row("obstacle", name=name, id=draft.id if draft else None)
    thread = _rows.to_thread(found[1:]) if found else None
    if found is None or thread is None or thread.deleted_at is not None:
        return gone(name, existed=thread is not None)
    if draft is not None and found[0]:
        return taken_id(name, draft.id)
    if code == "thread_exists":
        text = f"thread {name!r} exists already; choose another name"
    else:
        text = f"thread {name!r} has moved on; load it and repeat the change"
    expected = write.expect.id if isinstance(write.expect, Checkpoint) else None
    return Conflict(text, code=code, thread=name, expected=expected, found=thread.head)


def taken(write: Write, error: errors.UniqueViolation) -> Conflict:
    """Somebody else's row has a number, name or id that a write wanted."""
    # The table may be a partition: its name begins with that of the whole.
    table = error.diag.table_name or ""
    if write.checkpoint is not None and table.startswith("checkpoint"):
        return taken_id(write.thread, write.checkpoint.id)
    if table.startswith("segment"):
        return Conflict(
            f"thread {write.thread!r}: a fork took the segment numbers first",
            code="segment_taken",
            thread=write.thread,
        )
    return Conflict(
        f"thread {write.thread!r} is being changed by somebody else; repeat the change",
        thread=write.thread,
    )


def taken_id(thread: str, checkpoint: str) -> Conflict:
    """The id of a save is in use."""
    return Conflict(
        f"checkpoint id {checkpoint!r} is taken by other content; use a new id",
        code="id_taken",
        thread=thread,
    )


def gone(thread: str, *, existed: bool) -> Conflict:
    """The thread of a write is not there, or not any more."""
    code = "thread_deleted" if existed else "thread_missing"
    if existed:
        text = "was deleted; to begin it anew, save with expect=None"
    else:
        text = "does not exist; save to it without expect first"
    return Conflict(f"thread {thread!r} {text}", code=code, thread=thread)


def stale_plan() -> Conflict:
    """Something that shall go has changed since it was chosen."""
    return Conflict("the store changed while pruning; prune again", code="plan_stale")


def outrun() -> Conflict:
    """A caller's transaction has a view that is older than what it wants to change."""
    return Conflict(
        "somebody changed this since your transaction began; roll back and repeat it",
        code="serialization",
    )
