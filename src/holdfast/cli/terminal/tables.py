"""Lines made of styled pieces, and rows of them with their columns aligned."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TypeAlias, TypeGuard, cast

from holdfast.cli.terminal.escape import one_line, width

# A piece of a line with the name of its style, "" for none.
Span: TypeAlias = tuple[str, str]
Line: TypeAlias = tuple[Span, ...]
# Mostly one piece; several stand side by side.
Cell: TypeAlias = Span | Line

GAP = 2


def aligned(
    rows: Iterable[Sequence[Cell]], right: Collection[int] = ()
) -> Iterator[Line]:
    """Rows as lines in which each column begins, or ends if ``right``, below another.

    Of what ends a row, nothing is padded; a row of one cell goes across.
    """
    table = [_trimmed([_spans(cell) for cell in row]) for row in rows]
    widths: dict[int, int] = {}
    for row in table:
        for column, cell in enumerate(row):
            if len(row) > 1 and column < len(row) - (column not in right):
                widths[column] = max(widths.get(column, 0), _width(cell))
    for row in table:
        yield tuple(_joined(row, widths, right))


def spaced(spans: Iterable[Span]) -> Line:
    """Pieces side by side, those that are empty left out."""
    line: list[Span] = []
    for text, style in spans:
        if text:
            line += [(" ", ""), (text, style)] if line else [(text, style)]
    return tuple(line)


def _joined(
    row: list[Line], widths: dict[int, int], right: Collection[int]
) -> Iterator[Span]:
    last = len(row) - 1
    for column, cell in enumerate(row):
        room = " " * (widths.get(column, 0) - _width(cell))
        gap = " " * GAP if column < last else ""
        if column in right:
            yield (room, "")
            room = ""
        yield from cell
        yield (room + gap if column < last else "", "")


def _trimmed(row: list[Line]) -> list[Line]:
    while row and not _width(row[-1]):
        row.pop()
    return row


def _spans(cell: Cell) -> Line:
    line = (cell,) if _is_span(cell) else cast("Line", cell)
    return tuple((one_line(text), style) for text, style in line)


def _is_span(cell: Cell) -> TypeGuard[Span]:
    return bool(cell) and isinstance(cell[0], str)


def _width(cell: Line) -> int:
    return sum(width(text) for text, _ in cell)
