"""Queries of upkeep: whole families, counts and sizes."""

from __future__ import annotations

import msgspec
from msgspec.structs import astuple

from holdfast._port.queries import Query
from holdfast._values.records import Checkpoint, Move, Run, ThreadRecord


class Weight(msgspec.Struct, frozen=True):
    """The size of a family: its states as they are stored, with or without segments."""

    family: int
    checkpoints: int
    logical_bytes: int
    segments: int
    stored_bytes: int


class Weights(Query[Weight], frozen=True, kw_only=True):
    """The families with the most stored bytes, heaviest first."""

    limit: int | None = None


class SegmentSize(msgspec.Struct, frozen=True):
    """The stored form of a segment or a block, without its bytes."""

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
    """The number of threads of a kind that were saved to."""

    kind: str
    threads: int


class Kinds(Query[KindCount], frozen=True):
    """The kinds of the threads that were saved to, each with the number of threads."""


class Horizon(Query[int], frozen=True, kw_only=True):
    """One number: every later change has a sequence number above it.

    Zero, if a backend cannot tell.
    """


class FamilyMoves(Query[Move], frozen=True, kw_only=True):
    """The moves of the living threads of families, without saves, oldest first."""

    families: tuple[int, ...]


class ThreadMoves(Query[Move], frozen=True, kw_only=True):
    """The moves of a thread, without saves and moves that a prune logged, newest first.

    ``number`` is that of the thread.
    """

    family: int
    number: int
    before: int | None = None
    limit: int


class SavedIn(Query[int], frozen=True, kw_only=True):
    """One number: the checkpoints in the families of a kind's threads."""

    kind: str


class Total(msgspec.Struct, frozen=True):
    """A sum over threads, and the names of the threads without this number."""

    sum: int
    without: tuple[str, ...]


class Totals(Query[Total], frozen=True, kw_only=True):
    """The sum of one number in the manifests, which are JSON, of a kind's heads.

    ``path`` leads to the number. The page is empty if the backend cannot read
    manifests.
    """

    kind: str
    path: tuple[str | int, ...]


class FamilySize(msgspec.Struct, frozen=True):
    """A family and the number of its checkpoints."""

    family: int
    checkpoints: int


class Surplus(Query[FamilySize], frozen=True, kw_only=True):
    """The families in which a prune may find checkpoints to remove, by number.

    Such a family has a living thread with more than ``more_than`` checkpoints of its
    own, the oldest of them saved before ``saved_before`` if that is given, or it has
    checkpoints of a deleted thread. A thread whose only checkpoint is its head does not
    count. A backend may return more families. At most ``limit`` threads are looked at,
    and then the rest of the last one's family; the cursor is the last family looked at,
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
    """The number of checkpoints of some families, up to a sequence number if it is set.

    Families without any are left out.
    """

    families: tuple[int, ...]
    up_to: int | None = None


class Sums(msgspec.Struct, frozen=True):
    """The contents of some families, as the counts and sizes of `Facts`."""

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
    """One record: the contents of some families together."""

    families: tuple[int, ...]


class Outline(msgspec.Struct, frozen=True, gc=False):
    """A checkpoint without its content: its place in the family, and its segments."""

    seq: int
    parent: int | None
    thread: int
    saved_at: int
    is_labelled: bool
    is_tagged: bool
    runs: tuple[Run, ...]


class Outlines(Query[Outline], frozen=True, kw_only=True):
    """The saves of a thread in a family, by the thread's number, oldest first."""

    family: int
    thread: int
    after: int = 0
    limit: int


class NumberedSaves(Query[Checkpoint], frozen=True, kw_only=True):
    """The checkpoints of a family with some sequence numbers, oldest first."""

    family: int
    numbers: tuple[int, ...]
