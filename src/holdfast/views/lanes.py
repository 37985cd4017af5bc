"""The layout of a tree of checkpoints in lanes, newest first.

A checkpoint has one parent, so lanes never cross: a lane ends where its checkpoint has
the same parent as a checkpoint in a lane further left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Generic, Protocol, TypeVar

import msgspec


class Node(Protocol):
    """A node of the graph, by its id and parent."""

    @property
    def id(self) -> str: ...
    @property
    def parent(self) -> str | None: ...


N = TypeVar("N", bound=Node)


class LaneRow(msgspec.Struct, Generic[N], frozen=True):
    """One row: a node in lane ``at``, or, without a node, lanes that end.

    ``lanes`` says for each lane whether it is in use; the lanes ``ending`` join the
    lane ``at``.
    """

    node: N | None
    at: int
    lanes: tuple[bool, ...]
    ending: tuple[int, ...] = ()


class PlacedNode(msgspec.Struct, frozen=True):
    """A node at its lane: ``before`` are the lanes above it, ``lanes`` those beside.

    A ``tip`` has nothing above it in its lane.
    """

    at: int
    before: tuple[bool, ...]
    lanes: tuple[bool, ...]
    ending: tuple[int, ...]
    tip: bool


class Lanes:
    """The lanes after some nodes; a listing of many pages hands them on.

    ``awaited`` is for each lane the mark of the node that comes next in it.
    """

    def __init__(self, awaited: Sequence[str | None] = ()) -> None:
        self.awaited = list(awaited)

    def place(self, node: Node) -> PlacedNode:
        """The lane of the next node, which must come before its parent."""
        mark = mark_of(node.id)
        found = [i for i, awaited in enumerate(self.awaited) if awaited == mark]
        lanes = found or [self._free()]
        self.awaited[lanes[0]] = mark
        at, *ending = lanes
        before = self._in_use()
        for lane in ending:
            self.awaited[lane] = None
        while self.awaited and self.awaited[-1] is None:
            self.awaited.pop()
        beside = self._in_use()
        self.awaited[at] = None if node.parent is None else mark_of(node.parent)
        return PlacedNode(at, before, beside, tuple(ending), not found)

    def _free(self) -> int:
        if None in self.awaited:
            return self.awaited.index(None)
        self.awaited.append(None)
        return len(self.awaited) - 1

    def _in_use(self) -> tuple[bool, ...]:
        return tuple(mark is not None for mark in self.awaited)


def laid_out(nodes: Iterable[N]) -> Iterator[LaneRow[N]]:
    """The rows of a tree; every node must come before its parent."""
    lanes = Lanes()
    for node in nodes:
        placed = lanes.place(node)
        if placed.ending:
            yield LaneRow(None, placed.at, placed.before, placed.ending)
        yield LaneRow(node, placed.at, placed.lanes)


def mark_of(id_: str) -> str:
    """A short text in place of an id, so that the lanes of many forks fit a cursor."""
    return blake2b(id_.encode(), digest_size=6).hexdigest()
