"""The layout of a tree of checkpoints in lanes, newest first.

A checkpoint has one parent, so lanes never cross: a lane ends where its checkpoint has
the same parent as a checkpoint in a lane further left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, Protocol, TypeVar

import msgspec


class Node(Protocol):
    """What is laid out."""

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


def laid_out(nodes: Iterable[N]) -> Iterator[LaneRow[N]]:
    """The rows of a tree; every node must come before its parent."""
    awaited: list[str | None] = []
    for node in nodes:
        lanes = [i for i, id_ in enumerate(awaited) if id_ == node.id]
        if not lanes:
            lanes = [_free(awaited)]
            awaited[lanes[0]] = node.id
        at, *ending = lanes
        if ending:
            yield LaneRow(None, at, _in_use(awaited), tuple(ending))
        for lane in ending:
            awaited[lane] = None
        while awaited and awaited[-1] is None:
            awaited.pop()
        yield LaneRow(node, at, _in_use(awaited))
        awaited[at] = node.parent


def _free(awaited: list[str | None]) -> int:
    if None in awaited:
        return awaited.index(None)
    awaited.append(None)
    return len(awaited) - 1


def _in_use(awaited: list[str | None]) -> tuple[bool, ...]:
    return tuple(id_ is not None for id_ in awaited)
