"""Listings of checkpoints: the line of a thread, a range, or the tree of a family."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice, takewhile

import msgspec

from holdfast._api.thread import Thread
from holdfast._values.records import Checkpoint, ThreadRecord
from holdfast.views.lineage import LineageEntry, lineage_of
from holdfast.views.references import Revision, is_on_line, line_of


class HistoryFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which checkpoints to list; ``all`` includes those that were rewound."""

    limit: int
    all: bool = False
    since: int | None = None
    tag: str | None = None
    label: str | None = None

    @property
    def leaves_gaps(self) -> bool:
        """Whether checkpoints between others are left out."""
        return self.tag is not None or self.label is not None

    def recent(self, checkpoints: Iterable[Checkpoint]) -> Iterator[Checkpoint]:
        """Checkpoints up to the first that is older than ``since``."""
        since = self.since
        if since is None:
            return iter(checkpoints)
        return takewhile(lambda c: c.saved_at >= since, checkpoints)


class HistoryListing(msgspec.Struct, frozen=True):
    """Checkpoints, newest first; ``family`` are the threads of a tree."""

    thread: str
    entries: list[LineageEntry]
    family: tuple[ThreadRecord, ...] | None = None


def tree(start: Revision, wanted: HistoryFilter) -> HistoryListing:
    """Every checkpoint of the thread's family."""
    # Heads first: a checkpoint that is saved in between then still has its parent
    # in the listing. In the other order a head could be missing from it.
    family = start.thread.family()
    checkpoints = start.thread.tree(wanted.limit)
    entries = lineage_of(wanted.recent(checkpoints), family)
    return HistoryListing(start.thread.id, entries, tuple(family))


def line(start: Revision, wanted: HistoryFilter) -> HistoryListing:
    """A checkpoint and its ancestors."""
    thread = start.thread
    record = start.record or thread.about
    head = record.head if record else None
    is_head = head is not None and head.id == start.checkpoint.id
    checkpoints = _from(start, wanted, is_head=is_head)
    if wanted.all and is_head and not wanted.leaves_gaps and record is not None:
        return HistoryListing(thread.id, lineage_of(checkpoints, [record]))
    contiguous = not wanted.all and not wanted.leaves_gaps
    entries = _entries(thread, head, checkpoints, contiguous=contiguous)
    return HistoryListing(thread.id, list(entries))


def difference(old: Revision, new: Revision, wanted: HistoryFilter) -> HistoryListing:
    """The checkpoints on the line of ``new`` that are not on the line of ``old``."""
    thread = new.thread
    only_new = wanted.recent(_missing_from(line_of(old), line_of(new)))
    checkpoints = islice(only_new, wanted.limit)
    record = new.record or thread.about
    head = record.head if record else None
    entries = _entries(thread, head, checkpoints, contiguous=True)
    return HistoryListing(thread.id, list(entries))


def _from(
    start: Revision, wanted: HistoryFilter, *, is_head: bool
) -> Iterator[Checkpoint]:
    # A page before a checkpoint leaves that checkpoint out, so it is put in front.
    first = [] if is_head or wanted.leaves_gaps else [start.checkpoint]
    page = start.thread.history(
        max(wanted.limit - len(first), 1),
        before=None if is_head else start.checkpoint,
        all=wanted.all,
        tag=wanted.tag,
        label=wanted.label,
    )
    return wanted.recent(islice(chain(first, page), wanted.limit))


def _missing_from(
    old: Iterator[Checkpoint], new: Iterator[Checkpoint]
) -> Iterator[Checkpoint]:
    known = next(old, None)
    for checkpoint in new:
        while known is not None and known.step > checkpoint.step:
            known = next(old, None)
        if known is not None and known.id == checkpoint.id:
            return
        yield checkpoint


def _entries(
    thread: Thread,
    head: Checkpoint | None,
    checkpoints: Iterable[Checkpoint],
    *,
    contiguous: bool,
) -> Iterator[LineageEntry]:
    """Entries that say whether each checkpoint leads to the thread's head.

    On a line without gaps, every ancestor of a checkpoint that does so leads there too.
    """
    leads = False
    names = (thread.id,)
    for checkpoint in checkpoints:
        is_head = head is not None and head.id == checkpoint.id
        leads = (contiguous and leads) or is_head or is_on_line(thread, checkpoint)
        yield LineageEntry(checkpoint, names if is_head else (), names if leads else ())
