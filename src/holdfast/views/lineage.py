"""The checkpoints of a listing on the line of a head, with the threads of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from holdfast._engine.context import Context
from holdfast._engine.threads import lineage
from holdfast._port import Ancestors, Saves
from holdfast._values.records import Checkpoint, ThreadRecord

CHUNK = 200


class LineageEntry(msgspec.Struct, frozen=True):
    """A checkpoint, the threads it is the head of, and the threads it leads to.

    A checkpoint that leads to no head was rewound.
    """

    checkpoint: Checkpoint
    heads: tuple[str, ...]
    threads: tuple[str, ...]

    @property
    def id(self) -> str:
        return self.checkpoint.id

    @property
    def parent(self) -> str | None:
        return self.checkpoint.parent

    @property
    def is_rewound(self) -> bool:
        """True if no head builds on it."""
        return not self.threads


def lineage_of(
    checkpoints: Iterable[Checkpoint],
    threads: Sequence[ThreadRecord],
    entering: Mapping[str, Sequence[str]] | None = None,
) -> list[LineageEntry]:
    """Entries for checkpoints that are given newest first and without gaps.

    ``entering`` are the threads whose heads are newer than all of them, by the id of
    the first checkpoint that leads to each.
    """
    leading = {id_: list(names) for id_, names in (entering or {}).items()}
    heads: dict[str, list[str]] = {}
    for thread in threads:
        if thread.head is not None:
            heads.setdefault(thread.head.id, []).append(thread.id)
    found: list[LineageEntry] = []
    for checkpoint in checkpoints:
        here = heads.get(checkpoint.id, [])
        names = here + leading.pop(checkpoint.id, [])
        if checkpoint.parent is not None and names:
            leading.setdefault(checkpoint.parent, []).extend(names)
        found.append(LineageEntry(checkpoint, tuple(here), tuple(names)))
    return found


# --- a page in the middle -------------------------------------------------------------


async def entering(
    context: Context, threads: Sequence[ThreadRecord], before: int
) -> dict[str, list[str]]:
    """The threads whose heads are not before a number, as `lineage_of` takes them."""
    found: dict[str, list[str]] = {}
    for thread in threads:
        if thread.head is not None and thread.head.seq >= before:
            first = await newest_by(context, thread, before - 1)
            if first is not None:
                found.setdefault(first.id, []).append(thread.id)
    return found


async def newest_by(
    context: Context, record: ThreadRecord, seq: int
) -> Checkpoint | None:
    """The newest checkpoint on the line of a thread's head, up to a number."""
    head, thread = record.head, record
    while head is not None:
        found = await _saved_by(context, thread, seq)
        if found is not None:
            if await lineage.is_ancestor(context, found, of=head):
                return found
            return await _walked(context, head, seq)
        if thread.forked_from is None:
            return None
        # All that the fork saved is newer: the line goes on in another thread.
        above = await context.find_thread(thread.forked_from.thread)
        if above is None or above.family != record.family:
            return await _walked(context, head, seq)
        thread = above
    return None


async def _walked(context: Context, head: Checkpoint, seq: int) -> Checkpoint | None:
    """Like `newest_by`, by walking the line: the newest save was rewound or deleted."""
    skip = 0
    while page := await context.backend.scan(
        Ancestors(start=head, skip=skip, limit=CHUNK)
    ):
        for checkpoint in page:
            if checkpoint.seq <= seq:
                return checkpoint
        head, skip = page[-1], 1
    return None


async def _saved_by(
    context: Context, thread: ThreadRecord, seq: int
) -> Checkpoint | None:
    """The newest checkpoint that a thread saved up to a number."""
    saves = Saves(family=thread.family, thread=thread.id, before=seq + 1, limit=1)
    return next(iter(await context.backend.scan(saves)), None)
