"""Listings as values: what `Backend.scan` takes, and the records it gives."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec
from msgspec.structs import astuple

from holdfast._port.reads import Indexed
from holdfast._values.records import (
    Checkpoint,
    Entry,
    Move,
    Run,
    ThreadRecord,
    check_cursor,
    check_filter,
)

R = TypeVar("R")


class Query(msgspec.Struct, Generic[R], frozen=True):
    """A listing as a value; the parameter is what its page holds."""


class Ancestors(Query[Checkpoint], frozen=True, kw_only=True):
    """A checkpoint, or the head of a thread, and the chain of its parents.

    Newest first; nothing if there is no such thread. ``skip`` passes over as many. The
    walk ends with the first that is not above ``down_to_step``; those above
    ``from_step`` are passed over.
    """

    start: Checkpoint | str
    skip: int = 0
    limit: int | None = None
    down_to_step: int = 0
    from_step: int | None = None


class LineLength(Query[int], frozen=True):
    """One number: how many `Ancestors` of the head of a thread there are."""

    thread: str


class Saves(Query[Checkpoint], frozen=True, kw_only=True):
    """The checkpoints saved in a family or in one of its threads, by sequence."""

    family: int
    thread: str | None = None
    before: int | None = None
    after: int | None = None
    oldest_first: bool = False
    limit: int | None = None

    def __post_init__(self) -> None:
        check_cursor(self.before)
        check_cursor(self.after)


class Marked(Query[Checkpoint], frozen=True, kw_only=True):
    """A family's checkpoints with a label or, without one, with a tag, newest first."""

    family: int
    label: str | None = None
    tag: str | None = None
    before: int | None = None
    limit: int | None = None


class Matches(Query[Checkpoint], frozen=True, kw_only=True):
    """The checkpoints whose id begins with a prefix, in one family or in all, by id."""

    prefix: str
    family: int | None = None
    after: str = ""
    limit: int = 10


class Threads(Query[ThreadRecord], frozen=True, kw_only=True):
    """The threads, last used first; ``after`` is the cursor of the page before.

    Tombstones and threads that were never saved to are left out unless ``every``;
    threads of the kind ``without`` are left out always. One of the texts of each of
    ``metadata`` must be in a thread's encoded metadata. It is no mistake to give others
    too: the caller looks again.
    """

    kind: str | None = None
    without: str | None = None
    owner: str | None = None
    agent: str | None = None
    prefix: str | None = None
    metadata: tuple[tuple[bytes, ...], ...] = ()
    family: int | None = None
    after: int | None = None
    limit: int | None = None
    every: bool = False

    def __post_init__(self) -> None:
        check_cursor(self.after)
        for name in ("kind", "without", "owner", "agent", "prefix"):
            check_filter(getattr(self, name), name)


class Moves(Query[Move], frozen=True, kw_only=True):
    """A thread's head moves, saves included, newest first."""

    thread: str
    before: int | None = None
    limit: int | None = None

    def __post_init__(self) -> None:
        check_cursor(self.before)


class Entries(Query[Entry], frozen=True, kw_only=True):
    """A thread's journal: of one checkpoint, of the thread itself (""), or all.

    ``prefix`` is the beginning of the keys, and is given only with a checkpoint and
    without a ``key``.
    """

    thread: str
    checkpoint: str | None = None
    key: str | None = None
    prefix: str | None = None


class FamilyEntries(Query[Entry], frozen=True, kw_only=True):
    """What the threads of a family recorded on themselves, by the beginning of keys.

    Oldest first; nothing of deleted threads.
    """

    family: int
    prefix: str


class OwnEntries(Query[Entry], frozen=True, kw_only=True):
    """What several threads recorded on themselves, by the beginning of keys.

    Oldest first; nothing of deleted threads.
    """

    threads: tuple[str, ...]
    prefix: str


class CheckpointEntries(Query[Entry], frozen=True, kw_only=True):
    """What the journal of a thread has on several checkpoints, oldest first.

    Nothing if the thread was deleted.
    """

    thread: ThreadRecord
    checkpoints: tuple[str, ...]


class Stale(msgspec.Struct, frozen=True, gc=False):
    """A thread that is not indexed as it is, and what the index has of it.

    There is no ``thread`` if its record is damaged, or if it is gone and only the index
    still has something of it.
    """

    number: int
    changed: int
    found: Indexed
    thread: ThreadRecord | None = None
    is_gone: bool = False


class Outdated(Query[Stale], frozen=True, kw_only=True):
    """The threads that are not indexed as they are, by their last change.

    The backend knows up to which change its index is complete, and looks only at what
    changed later, or after the change ``after``. The cursor of the page is the last
    change that it covers; there is none if the index is complete, or cannot be written.
    A backend that has still something to do with its index gives one in any case.
    It is 0, with an empty page, if there is no index: an empty `IndexBatch` makes it.
    Threads of the kind ``without`` do not belong into the index.
    """

    form: int
    without: str
    after: int | None = None
    limit: int | None = None


class OutdatedCount(Query[int], frozen=True, kw_only=True):
    """One number: how many threads `Outdated` lists in all."""

    form: int
    without: str


class Scattered(Query[Stale], frozen=True, kw_only=True):
    """The threads indexed in more than twice as many stretches as a size allows.

    By number, after the number ``after``. What the index still has of threads that are
    gone comes behind the last of them.
    """

    stretch: int
    after: int | None = None
    limit: int | None = None


class Candidate(msgspec.Struct, frozen=True):
    """A thread, and where in it a text may stand; ``None`` means anywhere."""

    thread: ThreadRecord
    where: tuple[range, ...] | None = None


class Candidates(Query[Candidate], frozen=True, kw_only=True):
    """The threads in which some texts may stand together, last used first.

    Every thread is given that is not indexed as it is, and of the others every stretch
    that holds all of ``texts``. There is at least one; each is prepared and at least
    three characters long. It is no mistake to give more: with ``quick`` the backend
    may give threads that it has not looked up in the index, if the texts are so
    frequent that reading the threads used last is faster.
    """

    texts: tuple[str, ...]
    form: int
    kind: str | None = None
    without: str | None = None
    owner: str | None = None
    agent: str | None = None
    after: int | None = None
    limit: int | None = None
    quick: bool = False


class Weight(msgspec.Struct, frozen=True):
    """What a family takes: its states as they are stored, with or without segments."""

    family: int
    checkpoints: int
    logical_bytes: int
    segments: int
    stored_bytes: int


class Weights(Query[Weight], frozen=True, kw_only=True):
    """The families with the most stored bytes, heaviest first."""

    limit: int | None = None


class SegmentSize(msgspec.Struct, frozen=True):
    """How a segment or a block is stored, without its bytes."""

    family: int
    number: int
    count: int
    packing: int
    size: int


class SegmentSizes(Query[SegmentSize], frozen=True, kw_only=True):
    """All segments and blocks by family and number; ``after`` is a page's cursor."""

    after: int = 0
    limit: int


class KindCount(msgspec.Struct, frozen=True):
    """How many threads of a kind were saved to."""

    kind: str
    threads: int


class Kinds(Query[KindCount], frozen=True):
    """The kinds of the threads that were saved to, with how many there are of each."""


class Horizon(Query[int], frozen=True, kw_only=True):
    """One number: no change with this sequence number or a lower one can still come.

    Zero, if a backend cannot tell.
    """


class SavedIn(Query[int], frozen=True, kw_only=True):
    """One number: how many checkpoints the families of a kind's threads have."""

    kind: str


class Total(msgspec.Struct, frozen=True):
    """A sum over threads, and the names of those that had nothing to add."""

    sum: int
    without: tuple[str, ...]


class Totals(Query[Total], frozen=True, kw_only=True):
    """The sum of one number in the manifests, which are JSON, of a kind's heads.

    ``path`` says where it stands. Nothing is given if the backend cannot read them.
    """

    kind: str
    path: tuple[str | int, ...]


class FamilySize(msgspec.Struct, frozen=True):
    """A family and how many checkpoints it has."""

    family: int
    checkpoints: int


class Surplus(Query[FamilySize], frozen=True, kw_only=True):
    """The families in which a prune may find checkpoints to remove, by number.

    Such a family has a living thread with more than ``more_than`` checkpoints of its
    own, the oldest of them saved before ``saved_before`` if that is given, or it has
    checkpoints of a deleted thread. A thread whose only checkpoint is its head does not
    count. It is no mistake to give more. At most ``limit`` threads are looked at, and
    then the rest of the last one's family; the cursor is the last family looked at,
    ``None`` at the end.
    """

    limit: int
    more_than: int = 0
    saved_before: int | None = None
    after: int = 0


class FamilyThreads(Query[ThreadRecord], frozen=True):
    """All threads of some families, tombstones included, by number."""

    families: tuple[int, ...]


class FamilySaves(Query[Checkpoint], frozen=True):
    """All checkpoints of some families, oldest first."""

    families: tuple[int, ...]


class FamilySizes(Query[FamilySize], frozen=True, kw_only=True):
    """How many checkpoints some families have, up to a sequence number if it is given.

    Families without any are left out.
    """

    families: tuple[int, ...]
    up_to: int | None = None


class Sums(msgspec.Struct, frozen=True):
    """What some families hold: the counts and sizes of `Facts`, of them alone."""

    threads: int = 0
    checkpoints: int = 0
    segments: int = 0
    journal_entries: int = 0
    logical_bytes: int = 0
    stored_bytes: int = 0

    def __add__(self, other: Sums) -> Sums:
        both = zip(astuple(self), astuple(other), strict=True)
        return Sums(*[mine + theirs for mine, theirs in both])


class FamilySums(Query[Sums], frozen=True, kw_only=True):
    """One record: what some families hold together."""

    families: tuple[int, ...]


class Outline(msgspec.Struct, frozen=True, gc=False):
    """A checkpoint without its content: where it stands in its family, what it uses."""

    seq: int
    parent: int | None
    thread: int
    saved_at: int
    is_labelled: bool
    is_tagged: bool
    runs: tuple[Run, ...]


class Outlines(Query[Outline], frozen=True, kw_only=True):
    """What was saved in a thread of a family, by the thread's number, oldest first."""

    family: int
    thread: int
    after: int = 0
    limit: int


class NumberedSaves(Query[Checkpoint], frozen=True, kw_only=True):
    """The checkpoints of a family with some sequence numbers, oldest first."""

    family: int
    numbers: tuple[int, ...]
