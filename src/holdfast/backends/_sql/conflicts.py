"""Refusals of a write, with the reason and what the caller can do next."""

from __future__ import annotations

from holdfast._port import Write
from holdfast._values.graves import ERASED
from holdfast._values.records import Checkpoint, ThreadRecord
from holdfast.errors import Conflict, NotFound


def refusal(
    write: Write,
    thread: ThreadRecord | None,
    *,
    id_taken: bool,
    code: str = "head_moved",
) -> Conflict:
    """Why a write cannot be made on a thread as it was found."""
    name = write.thread
    if thread is None or thread.deleted_at is not None:
        is_erased = thread is not None and thread.kind == ERASED
        return thread_gone(name, existed=thread is not None, is_erased=is_erased)
    if write.checkpoint is not None and id_taken:
        return taken_id(name, write.checkpoint.id)
    if code == "thread_exists":
        text = f"thread {name!r} exists already; choose another name"
    else:
        text = f"thread {name!r} has moved on; load it and repeat the change"
    expected = write.expect.id if isinstance(write.expect, Checkpoint) else None
    return Conflict(text, code=code, thread=name, expected=expected, found=thread.head)


def thread_gone(thread: str, *, existed: bool, is_erased: bool = False) -> Conflict:
    """The thread of a write was deleted or erased, or was never there."""
    code = "thread_deleted" if existed else "thread_missing"
    if existed:
        how = "erased" if is_erased else "deleted"
        text = f"was {how}; to begin it anew, save with expect=None"
    else:
        text = "does not exist; save to it without expect first"
    return Conflict(f"thread {thread!r} {text}", code=code, thread=thread)


def taken_id(thread: str, checkpoint: str) -> Conflict:
    """The id of a save is in use."""
    return Conflict(
        f"checkpoint id {checkpoint!r} is taken by other content; use a new id",
        code="id_taken",
        thread=thread,
    )


def taken_segment(thread: str) -> Conflict:
    """A segment number of a save is in use."""
    return Conflict(
        f"thread {thread!r}: a fork took the segment numbers first",
        code="segment_taken",
        thread=thread,
    )


def taken_entry(thread: str) -> Conflict:
    """A key that a write must be the first to record is in use."""
    return Conflict(
        f"thread {thread!r}: a key to record is taken; look up what it holds",
        code="entry_taken",
        thread=thread,
    )


def stale_plan() -> Conflict:
    """Something that a prune would remove has changed since it was chosen."""
    return Conflict("the store changed while pruning; prune again", code="plan_stale")


def removed(checkpoint: Checkpoint) -> NotFound:
    """A checkpoint that a write refers to was removed."""
    return NotFound(
        f"checkpoint {checkpoint.id!r} was removed meanwhile; look it up again",
        thread=checkpoint.thread,
        reference=checkpoint.id,
    )
