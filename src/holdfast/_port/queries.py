"""Listings as values: what `Backend.scan` takes, and the records it gives."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from holdfast._values.records import (
    Checkpoint,
    Entry,
    Move,
    ThreadRecord,
    check_cursor,
    check_filter,
)

R = TypeVar("R")


class Query(msgspec.Struct, Generic[R], frozen=True):
    """A listing as a value; the type parameter is the type of the page's records."""


class Ancestors(Query[Checkpoint], frozen=True, kw_only=True):
    """A checkpoint, or the head of a thread, and the chain of its parents.

    Newest first; nothing if there is no such thread. ``skip`` passes over as many. The
    walk ends with the first that is not above ``down_to_step``; those above
    ``from_step`` are skipped.
    """

    start: Checkpoint | str
    skip: int = 0
    limit: int | None = None
    down_to_step: int = 0
    from_step: int | None = None


class LineLength(Query[int], frozen=True):
    """One number: the `Ancestors` of the head of a thread."""

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
    """The checkpoints whose id begins with a prefix, in one family or in all, by id.

    Only of threads whose names begin with ``within``, the names of scopes. ``direct``
    leaves out the threads of scopes inside of these.
    """

    prefix: str
    family: int | None = None
    after: str = ""
    within: str = ""
    direct: bool = False
    limit: int = 10


class Threads(Query[ThreadRecord], frozen=True, kw_only=True):
    """The threads, last used first; ``after`` is the cursor of the page before.

    Tombstones and threads that were never saved to are left out unless ``every``;
    threads of the kind ``without`` are left out always. One of the texts of each of
    ``metadata`` must be in a thread's encoded metadata. A backend may return other
    threads too: the caller filters them.
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

    ``prefix`` is the beginning of the keys, and is set only with a checkpoint and
    without a ``key``.
    """

    thread: str
    checkpoint: str | None = None
    key: str | None = None
    prefix: str | None = None


class FamilyEntries(Query[Entry], frozen=True, kw_only=True):
    """The entries of a family's threads on themselves, by the beginning of keys.

    Oldest first, without those of deleted threads.
    """

    family: int
    prefix: str


class OwnEntries(Query[Entry], frozen=True, kw_only=True):
    """The entries of several threads on themselves, by the beginning of keys.

    Oldest first, without those of deleted threads.
    """

    threads: tuple[str, ...]
    prefix: str


class CheckpointEntries(Query[Entry], frozen=True, kw_only=True):
    """The entries of a thread's journal on several checkpoints, oldest first.

    Nothing if the thread was deleted.
    """

    thread: ThreadRecord
    checkpoints: tuple[str, ...]
