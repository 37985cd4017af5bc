"""The layout of a tree of checkpoints in lanes, newest first; pure.

A checkpoint has one parent, so lanes part upwards and never cross: a lane ends where
its checkpoint has the same parent as one further left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, Protocol, TypeVar

import msgspec

from holdfast.cli.terminal.glyphs import Glyphs


class Node(Protocol):
    """What is laid out."""

    @property
    def id(self) -> str: ...
    @property
    def parent(self) -> str | None: ...


N = TypeVar("N", bound=Node)


class Row(msgspec.Struct, Generic[N], frozen=True):
    """One line: a node in its lane, or without one the lanes that end.

    ``lanes`` says of each lane whether it is there; ``ending`` are those that join the
    lane ``at``.
    """

    node: N | None
    at: int
    lanes: tuple[bool, ...]
    ending: tuple[int, ...] = ()


def laid_out(nodes: Iterable[N]) -> Iterator[Row[N]]:
    """The rows of a tree, whose nodes come before their parents."""
    awaited: list[str | None] = []
    for node in nodes:
        lanes = [i for i, id_ in enumerate(awaited) if id_ == node.id]
        if not lanes:
            lanes = [_free(awaited)]
            awaited[lanes[0]] = node.id
        at, *ending = lanes
        if ending:
            yield Row(None, at, _present(awaited), tuple(ending))
        for lane in ending:
            awaited[lane] = None
        while awaited and awaited[-1] is None:
            awaited.pop()
        yield Row(node, at, _present(awaited))
        awaited[at] = node.parent


def drawn(row: Row[N], glyphs: Glyphs, node: str) -> str:
    """A row of the graph; ``node`` is the sign of its node."""
    if row.node is not None:
        signs = [glyphs.line if there else " " for there in row.lanes]
        signs[row.at] = node
        return " ".join(signs)
    return "".join(_joining(row, lane, glyphs) for lane in range(len(row.lanes)))


def _joining(row: Row[N], lane: int, glyphs: Glyphs) -> str:
    last = row.ending[-1]
    between = row.at <= lane < last
    after = glyphs.across if between else " " if lane < len(row.lanes) - 1 else ""
    if lane == row.at:
        return glyphs.branch + after
    if lane in row.ending:
        return (glyphs.corner if lane == last else glyphs.join) + after
    if row.lanes[lane]:
        return (glyphs.cross if between else glyphs.line) + after
    return (glyphs.across if between else " ") + after


def _free(awaited: list[str | None]) -> int:
    if None in awaited:
        return awaited.index(None)
    awaited.append(None)
    return len(awaited) - 1


def _present(awaited: list[str | None]) -> tuple[bool, ...]:
    return tuple(id_ is not None for id_ in awaited)
