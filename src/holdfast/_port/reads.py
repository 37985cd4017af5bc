"""What can be read by key: the values that `Backend.read` takes and gives."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

import msgspec

from holdfast._values.records import Checkpoint, Segment, ThreadRecord

R = TypeVar("R")


class Key(msgspec.Struct, Generic[R], frozen=True):
    """Something that can be read; the parameter is what comes back."""


class ThreadKey(Key[ThreadRecord], frozen=True):
    """A thread by name; its tombstone when it was deleted."""

    name: str


class Stored(msgspec.Struct, frozen=True):
    """A living thread and the segments of its head, in the order of its runs.

    Without segments the head is the one the caller knows.
    """

    thread: ThreadRecord
    segments: tuple[Segment, ...] | None


class StateKey(Key[Stored], frozen=True):
    """A living thread that was saved to, with its whole state, in one view.

    The segments are left out if the head is still the one with the number ``known``.
    """

    name: str
    known: int | None = None


class CheckpointKey(Key[Checkpoint], frozen=True):
    """A checkpoint of a family by its whole id."""

    family: int
    id: str


class Stretch(NamedTuple):
    """Neighbouring texts of a thread that are indexed as one, both ends included."""

    first: int
    last: int
    size: int
    hash: int


class Indexed(msgspec.Struct, frozen=True):
    """What the index holds of a thread: its texts as they were at a ``changed``.

    ``form`` says how the texts were prepared. No thread is ever at the ``changed`` -1,
    of which there may be nothing, or not everything yet.
    """

    changed: int = -1
    form: int = 0
    stretches: tuple[Stretch, ...] = ()


class IndexKey(Key[Indexed], frozen=True):
    """What the index holds of the thread with a number."""

    number: int
