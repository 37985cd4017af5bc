"""The threads that a prune is limited to, and what may be removed for them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast._engine.threads.removal import roots_of
from holdfast._port.removal import ancestry
from holdfast._values.records import PIN, Checkpoint, ThreadRecord, check_filter


class PruneScope(msgspec.Struct, frozen=True, kw_only=True):
    """The threads that a prune is limited to: those that match all that is given."""

    thread: str | None = None
    agent: str | None = None
    owner: str | None = None
    prefix: str | None = None

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            check_filter(getattr(self, name), name)

    @property
    def is_limited(self) -> bool:
        """Whether there can be threads outside of it."""
        return any(getattr(self, name) is not None for name in self.__struct_fields__)

    def has(self, thread: ThreadRecord) -> bool:
        """Whether a thread is in it."""
        return (
            self.thread in (None, thread.id)
            and self.agent in (None, thread.agent)
            and self.owner in (None, thread.owner)
            and (self.prefix is None or thread.id.startswith(self.prefix))
        )


EVERYTHING = PruneScope()


def removable(
    staying: Sequence[ThreadRecord],
    thinned: Sequence[ThreadRecord],
    checkpoints: Sequence[Checkpoint],
) -> set[str]:
    """The checkpoints of a family that may go when only some threads are thinned.

    These are the ones saved in those threads, and of what deleted threads left behind
    the part that no other thread needs. Where another thread was forked is kept.
    """
    numbers = {thread.number for thread in thinned}
    found = {c.id for c in checkpoints if c.thread_number in numbers}
    others = _others(staying, thinned)
    living = {thread.number for thread in staying}
    left = {c.id for c in checkpoints if c.thread_number not in living}
    if left:
        found |= left - _line(checkpoints, others)
    forked = {t.forked_from.checkpoint for t in others if t.forked_from is not None}
    return found - forked


def _others(
    staying: Sequence[ThreadRecord], thinned: Sequence[ThreadRecord]
) -> list[ThreadRecord]:
    """The threads that are not thinned, without the pins of those that are."""
    names = {thread.id for thread in thinned}
    return [
        thread
        for thread in staying
        if thread.id not in names and _source(thread) not in names
    ]


def _source(thread: ThreadRecord) -> str | None:
    """The thread that a pin holds."""
    origin = thread.forked_from if thread.kind == PIN else None
    return None if origin is None else origin.thread


def _line(
    checkpoints: Sequence[Checkpoint], threads: Sequence[ThreadRecord]
) -> set[str]:
    """All that some threads descend from, with what was saved in them."""
    numbers = {thread.number for thread in threads}
    own = [c.id for c in checkpoints if c.thread_number in numbers]
    return ancestry(checkpoints, [*own, *roots_of(threads)])
