"""What a search asks a backend: its index, and the threads that may hold a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from holdfast._port.queries import Query

if TYPE_CHECKING:
    from holdfast._values.records import Checkpoint, ThreadRecord


class Stretch(NamedTuple):
    """Neighbouring texts of a thread that are one entry of the index, ends included."""

    first: int
    last: int
    size: int
    hash: int


class Indexed(msgspec.Struct, frozen=True, gc=False):
    """What the index has of a thread: its texts when the thread had this ``changed``.

    ``form`` says how the texts were prepared. No thread has the ``changed`` -1: it
    stands for a thread that is not indexed, or not completely yet.
    """

    changed: int = -1
    form: int = 0
    stretches: tuple[Stretch, ...] = ()


class Stale(msgspec.Struct, frozen=True, gc=False):
    """A thread that is not indexed as it is, and what the index has of it.

    There is no ``head`` if its record is damaged, or if the thread is gone and only the
    index still has something of it.
    """

    number: int
    changed: int
    found: Indexed
    head: Checkpoint | None = None
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
