"""The lanes of a tree drawn with the signs of a terminal."""

from __future__ import annotations

from holdfast.cli.terminal.glyphs import Glyphs
from holdfast.views.lanes import LaneRow, N


def drawn(row: LaneRow[N], glyphs: Glyphs, node: str) -> str:
    """A row of the graph; ``node`` is the sign of its node."""
    if row.node is not None:
        signs = [glyphs.line if used else " " for used in row.lanes]
        signs[row.at] = node
        return " ".join(signs)
    return "".join(_joining(row, lane, glyphs) for lane in range(len(row.lanes)))


def _joining(row: LaneRow[N], lane: int, glyphs: Glyphs) -> str:
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
