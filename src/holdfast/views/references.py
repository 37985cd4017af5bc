"""Checkpoints with the thread they were named with, and the names shown for them."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from holdfast._api.store import Store
from holdfast._api.thread import Thread
from holdfast._values.records import Checkpoint, ThreadRecord
from holdfast.errors import NotFound

SHORTEST = 7
CHUNK = 200


class Revision(msgspec.Struct, frozen=True):
    """The checkpoint that a reference means, and the thread it was named with.

    ``record`` is the thread's record, if resolving the reference read it. ``named`` is
    how the thread was called, which may be the id of a conversation.
    """

    thread: Thread
    checkpoint: Checkpoint
    record: ThreadRecord | None = None
    named: str | None = None


def line_of(end: Revision) -> Iterator[Checkpoint]:
    """A checkpoint and its ancestors, newest first."""
    yield end.checkpoint
    last = end.checkpoint
    while page := end.thread.history(CHUNK, before=last):
        yield from page
        last = page[-1]


def newest_shared(
    a: Iterator[Checkpoint], b: Iterator[Checkpoint]
) -> Checkpoint | None:
    """The newest checkpoint that is on both lines."""
    one, other = next(a, None), next(b, None)
    while one is not None and other is not None and one.id != other.id:
        if one.step >= other.step:
            one = next(a, None)
        else:
            other = next(b, None)
    return one if other is not None else None


def shown_reference(store: Store, checkpoint: Checkpoint, thread: Thread) -> str:
    """``THREAD@STEP`` if that leads to the checkpoint, else the start of its id."""
    if is_on_line(thread, checkpoint):
        return f"{thread.id}@{checkpoint.step}"
    return short_id(store, checkpoint.id)


def is_on_line(thread: Thread, checkpoint: Checkpoint) -> bool:
    """True if the head of the thread builds on the checkpoint."""
    try:
        return thread.get(f"@{checkpoint.step}").id == checkpoint.id
    except NotFound:
        return False  # the line is shorter, or the thread is gone


def short_id(store: Store, id_: str) -> str:
    """The shortest start of an id that no other id has, at least 7 characters."""
    shortest, longest = min(SHORTEST, len(id_)), len(id_)
    while shortest < longest:
        middle = (shortest + longest) // 2
        try:
            store.get(id_[:middle])
            longest = middle
        except NotFound:
            shortest = middle + 1
    return id_[:longest]
