"""Listings of checkpoints: the line of a thread, a range, or the tree of a family."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, dropwhile, islice, takewhile

import msgspec
from msgspec.structs import replace

from holdfast._api.store import Store
from holdfast._api.thread import Thread
from holdfast._values.records import Checkpoint, ThreadRecord
from holdfast.views.lineage import LineageEntry, entering, lineage_of
from holdfast.views.references import Revision, is_on_line, line_of


class HistoryFilter(msgspec.Struct, frozen=True, kw_only=True):
    """The checkpoints to list; ``all`` includes rewound ones.

    ``before`` is the last checkpoint of a listing that is continued.
    """

    limit: int | None
    before: Checkpoint | None = None
    all: bool = False
    since: int | None = None
    tag: str | None = None
    label: str | None = None

    @property
    def leaves_gaps(self) -> bool:
        """True if the filter leaves out checkpoints between others."""
        return self.tag is not None or self.label is not None

    def recent(self, checkpoints: Iterable[Checkpoint]) -> Iterator[Checkpoint]:
        """Checkpoints up to the first that is older than ``since``."""
        since = self.since
        if since is None:
            return iter(checkpoints)
        return takewhile(lambda c: c.saved_at >= since, checkpoints)

    @property
    def wanted(self) -> int | None:
        """One more than the limit: whether there is more."""
        return None if self.limit is None else self.limit + 1


class HistoryListing(msgspec.Struct, frozen=True):
    """Checkpoints, newest first; ``family`` are the threads of a tree.

    ``more`` says that there are more than were asked for; ``named`` is what the user
    called the thread.
    """

    thread: str
    entries: list[LineageEntry]
    family: tuple[ThreadRecord, ...] | None = None
    more: bool = False
    named: str | None = None

    def cut(self, limit: int | None) -> HistoryListing:
        """The listing without what is beyond the limit."""
        if limit is None or len(self.entries) <= limit:
            return self
        return replace(self, entries=self.entries[:limit], more=True)


def tree(store: Store, start: Revision, wanted: HistoryFilter) -> HistoryListing:
    """Every checkpoint of the thread's family."""
    # Heads first: a checkpoint that is saved in between then still has its parent
    # in the listing. In the other order a head could be missing from it.
    family = start.thread.family()
    before = wanted.before.seq if wanted.before else None
    above = store.runner.run(entering, family, before) if before else None
    checkpoints = start.thread.tree(wanted.wanted, before=before)
    entries = lineage_of(wanted.recent(checkpoints), family, above)
    listing = HistoryListing(start.thread.id, entries, tuple(family))
    return listing.cut(wanted.limit)


def line(start: Revision, wanted: HistoryFilter) -> HistoryListing:
    """A checkpoint and its ancestors."""
    thread = start.thread
    record = start.record or thread.about
    head = record.head if record else None
    is_head = wanted.before is None and _is(head, start.checkpoint)
    checkpoints = _from(start, wanted, is_head=is_head)
    if wanted.all and is_head and not wanted.leaves_gaps and record is not None:
        entries = lineage_of(checkpoints, [record])
        return HistoryListing(thread.id, entries).cut(wanted.limit)
    contiguous = not wanted.all and not wanted.leaves_gaps
    listed = _entries(thread, head, checkpoints, contiguous=contiguous)
    return HistoryListing(thread.id, list(listed)).cut(wanted.limit)


def difference(old: Revision, new: Revision, wanted: HistoryFilter) -> HistoryListing:
    """The checkpoints on the line of ``new`` that are not on the line of ``old``."""
    thread = new.thread
    only_new = wanted.recent(_missing_from(line_of(old), line_of(new)))
    checkpoints = islice(_after(only_new, wanted.before), wanted.wanted)
    record = new.record or thread.about
    head = record.head if record else None
    entries = _entries(thread, head, checkpoints, contiguous=True)
    return HistoryListing(thread.id, list(entries)).cut(wanted.limit)


def _is(head: Checkpoint | None, checkpoint: Checkpoint) -> bool:
    return head is not None and head.id == checkpoint.id


def _after(
    checkpoints: Iterable[Checkpoint], last: Checkpoint | None
) -> Iterator[Checkpoint]:
    """The checkpoints after the last one of a listing, all without a last one."""
    if last is None:
        return iter(checkpoints)
    rest = dropwhile(lambda c: c.id != last.id, checkpoints)
    return islice(rest, 1, None)


def _from(
    start: Revision, wanted: HistoryFilter, *, is_head: bool
) -> Iterator[Checkpoint]:
    # A page before a checkpoint leaves that checkpoint out, so it is put in front.
    is_first = not (is_head or wanted.leaves_gaps or wanted.before)
    first = [start.checkpoint] if is_first else []
    page = start.thread.history(
        wanted.wanted,
        before=wanted.before or (None if is_head else start.checkpoint),
        all=wanted.all,
        tag=wanted.tag,
        label=wanted.label,
    )
    return wanted.recent(islice(chain(first, page), wanted.wanted))


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
        is_head = _is(head, checkpoint)
        leads = (contiguous and leads) or is_head or is_on_line(thread, checkpoint)
        yield LineageEntry(checkpoint, names if is_head else (), names if leads else ())
