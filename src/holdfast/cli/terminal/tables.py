"""Lines of styled spans, and rows of cells as lines with aligned columns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TypeAlias, TypeGuard, cast

import msgspec

from holdfast.cli.terminal.escape import one_line_width

# A text with the name of its style, "" for none.
Span: TypeAlias = tuple[str, str]
Line: TypeAlias = tuple[Span, ...]
# Mostly one span; several are printed side by side.
Cell: TypeAlias = Span | Line

GAP = 2


class _Measured(msgspec.Struct, frozen=True):
    """A cell of harmless text with the number of its columns."""

    spans: Line
    width: int


def aligned(
    rows: Iterable[Sequence[Cell]],
    right: Collection[int] = (),
    widths: dict[int, int] | None = None,
) -> Iterator[Line]:
    """Rows as lines with aligned columns; the columns ``right`` are aligned right.

    The last cell of a row is not padded; a row of one cell may be wider than a column.
    ``widths`` are those of the rows before, and become those of all.
    """
    table = [_trimmed(list(map(_measured, row))) for row in rows]
    widths = {} if widths is None else widths
    for row in table:
        for column, cell in enumerate(row):
            if len(row) > 1 and column < len(row) - (column not in right):
                widths[column] = max(widths.get(column, 0), cell.width)
    for row in table:
        yield tuple(_joined(row, widths, right))


def spaced(spans: Iterable[Span]) -> Line:
    """Spans separated by a space; empty ones are left out."""
    line: list[Span] = []
    for text, style in spans:
        if text:
            line += [(" ", ""), (text, style)] if line else [(text, style)]
    return tuple(line)


def _joined(
    row: list[_Measured], widths: dict[int, int], right: Collection[int]
) -> Iterator[Span]:
    last = len(row) - 1
    for column, cell in enumerate(row):
        padding = " " * (widths.get(column, 0) - cell.width)
        if column in right:
            yield (padding, "")
            padding = ""
        yield from cell.spans
        # A column that is empty in all rows takes no room, unless it indents them.
        if column < last and (column == 0 or widths.get(column, 0)):
            yield (padding + " " * GAP, "")


def _trimmed(row: list[_Measured]) -> list[_Measured]:
    while row and not row[-1].width:
        row.pop()
    return row


def _measured(cell: Cell) -> _Measured:
    line = (cell,) if _is_span(cell) else cast("Line", cell)
    spans: list[Span] = []
    columns = 0
    for text, style in line:
        shown, width = one_line_width(text)
        spans.append((shown, style))
        columns += width
    return _Measured(tuple(spans), columns)


def _is_span(cell: Cell) -> TypeGuard[Span]:
    return bool(cell) and isinstance(cell[0], str)
