"""Keys: the values that `Backend.read` takes, and the records it returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

import msgspec

from holdfast._values.records import Checkpoint, Run, Segment, ThreadRecord

R = TypeVar("R")


class Key(msgspec.Struct, Generic[R], frozen=True):
    """Something that can be read; the type parameter is the type of the result."""


class ThreadKey(Key[ThreadRecord], frozen=True):
    """A thread by name; its tombstone if it was deleted.

    The tombstone of an erased thread has the kind ``erased``.
    """

    name: str


class Stored(msgspec.Struct, frozen=True):
    """A thread that is not deleted, and the segments of its head's state in order.

    The segments of its files are left out. ``segments`` is ``None`` if the caller
    already knows the head.
    """

    thread: ThreadRecord
    segments: Sequence[Segment] | None


class StateKey(Key[Stored], frozen=True):
    """A thread with a head, and its whole state, in one consistent view.

    The segments are left out if the head still has the sequence number ``known``.
    """

    name: str
    known: int | None = None


class CheckpointKey(Key[Checkpoint], frozen=True):
    """A checkpoint of a family by its complete id."""

    family: int
    id: str


class Pieces(msgspec.Struct, frozen=True):
    """Some segments of a family, in order and complete."""

    segments: tuple[Segment, ...]


class SegmentsKey(Key[Pieces], frozen=True):
    """The segments of some runs; nothing if one of them is missing or damaged.

    As `Backend.segments`, for several families in one request.
    """

    family: int
    runs: tuple[Run, ...]
