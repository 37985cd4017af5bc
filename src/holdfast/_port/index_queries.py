"""Queries of a search: the index, and the threads that may hold a text."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from holdfast._port.queries import Query
from holdfast._values.records import Checkpoint, ThreadRecord


class Stretch(NamedTuple):
    """Neighbouring texts of a thread that are one entry of the index, ends included."""

    first: int
    last: int
    size: int
    hash: int


class Indexed(msgspec.Struct, frozen=True, gc=False):
    """The indexed texts of a thread, as of the change ``changed``.

    ``form`` is the version of the preparation of the texts. A thread that is not
    indexed, or not completely yet, has the ``changed`` -1.
    """

    changed: int = -1
    form: int = 0
    stretches: tuple[Stretch, ...] = ()


class Stale(msgspec.Struct, frozen=True, gc=False):
    """A thread whose index entry is outdated, and that entry.

    There is no ``head`` if its record is damaged, or if the thread is gone and only the
    index still has texts of it.
    """

    number: int
    changed: int
    found: Indexed
    head: Checkpoint | None = None
    is_gone: bool = False


class Outdated(Query[Stale], frozen=True, kw_only=True):
    """The threads whose index entries are outdated, by their last change.

    The backend knows up to which change its index is complete, and looks only at later
    changes, or at those after the change ``after``. The cursor of the page is the last
    change that it covers, ``None`` if the index is complete or cannot be written. A
    backend that still has work to do with its index always returns a cursor. The cursor
    is 0, with an empty page, if there is no index: an empty `IndexBatch` creates it.
    Threads of the kind ``without`` do not belong into the index.
    """

    form: int
    without: str
    after: int | None = None
    limit: int | None = None


class OutdatedCount(Query[int], frozen=True, kw_only=True):
    """One number: the threads that `Outdated` lists in all."""

    form: int
    without: str


class Scattered(Query[Stale], frozen=True, kw_only=True):
    """The threads indexed in more than twice as many stretches as a size allows.

    By number, after the number ``after``. Index entries of threads that are gone come
    last.
    """

    stretch: int
    after: int | None = None
    limit: int | None = None


class Candidate(msgspec.Struct, frozen=True):
    """A thread, and the place in it of a possible match; ``None`` means anywhere."""

    thread: ThreadRecord
    where: tuple[range, ...] | None = None


class Candidates(Query[Candidate], frozen=True, kw_only=True):
    """The threads in which some texts may stand together, last used first.

    The page has every thread whose index entry is outdated, and of the others every
    stretch that holds all of ``texts``. There is at least one text; each is prepared
    and at least three characters long. A backend may return more: with ``quick`` it may
    return threads without looking them up in the index, if the texts are so frequent
    that reading the threads used last is faster.
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
