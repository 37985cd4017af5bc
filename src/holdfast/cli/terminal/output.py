"""The output of a command: one JSON document, a stream of them, or lines of text.

The result goes to standard output, everything else to standard error.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TextIO

import click
import msgspec

from holdfast._values.shortening import ELLIPSIS
from holdfast.cli._shared_options import SharedOptions
from holdfast.cli._text import ago, time
from holdfast.cli.terminal.colours import painter
from holdfast.cli.terminal.escape import cut, escaped, harmless, one_line, width
from holdfast.cli.terminal.tables import Cell, Line, Span, aligned
from holdfast.views import documents

# How much of a text is printed where there is no screen to fit.
WITHOUT_TERMINAL = 100
LESS = "less -FRX"


class Glyphs(msgspec.Struct, frozen=True):
    """The characters that graphs are drawn with."""

    node: str = "●"
    rewound: str = "○"
    line: str = "│"
    branch: str = "├"
    across: str = "─"
    join: str = "┴"
    cross: str = "┼"
    corner: str = "╯"
    end: str = "╰"
    arrow: str = "→"
    ellipsis: str = ELLIPSIS


UNICODE = Glyphs()
ASCII = Glyphs("*", "o", "|", "|", "-", "+", "+", "/", "`", "->", "...")


class Output:
    """Prints the result of a command in the format that the options choose."""

    def __init__(self, options: SharedOptions, clock: Callable[[], int]) -> None:
        self.options, self._clock = options, clock

    # --- documents --------------------------------------------------------------------

    @property
    def is_json(self) -> bool:
        """True if a program reads the output."""
        return self.options.json or self.options.ndjson

    def answer(
        self, schema: str, document: Mapping[str, object], lines: Iterable[Line]
    ) -> None:
        """Print a document with ``--json``, its ``lines`` otherwise.

        ``schema`` is a name such as "threads/1"; ``lines`` may be a generator, which is
        run only if it is needed.
        """
        if self.is_json:
            self.document(schema, document)
        else:
            self.lines(lines)

    def done(
        self,
        schema: str,
        document: Mapping[str, object],
        *said: Span,
        more: Iterable[Line] = (),
    ) -> None:
        """Print a change that was made: a document, or a line unless ``--quiet``.

        ``more`` are lines about what it did not change.
        """
        self.answer(schema, document, () if self.options.quiet else (said, *more))

    def listing(
        self,
        names: tuple[str, str],
        items: Iterable[Mapping[str, object]],
        lines: Iterable[Line],
        *,
        schema: str | None = None,
        **rest: object,
    ) -> None:
        """Print many documents: together, with ``--ndjson`` one by one, or as lines.

        ``names`` are the singular and the plural, such as ("thread", "threads"). The
        schemas are "thread/1" and "threads/1", unless ``schema`` is given.
        """
        one, many = names
        if self.options.ndjson:
            for item in items:
                self.item(f"{one}/1", item)
        elif self.options.json:
            self.document(schema or f"{many}/1", {**rest, many: list(items)})
        else:
            self.lines(lines)

    def document(self, schema: str, document: Mapping[str, object]) -> None:
        """Print one JSON document."""
        whole = {"schema": f"holdfast.{schema}", **document}
        self._write_json(whole, indented=True)

    def item(self, schema: str, item: Mapping[str, object]) -> None:
        """Print one document of a stream (``--ndjson``) on its own line."""
        self._write_json({"schema": f"holdfast.{schema}", **item}, indented=False)

    def patch(self, operations: Sequence[object]) -> None:
        """Print a JSON Patch, which by its standard is a bare list."""
        self._write_json(operations, indented=True)

    def _write_json(self, document: object, *, indented: bool) -> None:
        text = documents.as_json(document, indented=indented).decode()
        sys.stdout.flush()
        sys.stdout.buffer.write(f"{escaped(text)}\n".encode())
        sys.stdout.buffer.flush()

    # --- text -------------------------------------------------------------------------

    @property
    def glyphs(self) -> Glyphs:
        """The characters that the terminal can show."""
        encoding = (sys.stdout.encoding or "").lower().replace("-", "")
        return ASCII if self.options.ascii or encoding != "utf8" else UNICODE

    @cached_property
    def _is_terminal(self) -> bool:
        # Asked for every line, and each time it is a call of the system.
        return sys.stdout.isatty()

    @property
    def columns(self) -> int | None:
        """The width of the screen, ``None`` without a terminal."""
        if not self._is_terminal:
            return None
        import shutil  # noqa: PLC0415 - loads three compressors

        return shutil.get_terminal_size().columns

    @property
    def is_paged(self) -> bool:
        """True if a pager shows the lines, so that they may go on without end."""
        wanted = self.options.pager and not self.is_json
        return wanted and self._is_terminal and bool(_pager())

    @property
    def width(self) -> int:
        """The columns of a text that is not cut later."""
        return self.columns or WITHOUT_TERMINAL

    def time(self, at: int) -> str:
        """A time: how long ago it was on a terminal, else in UTC."""
        return ago(at, self._clock()) if self._is_terminal else time(at)

    def lines(self, lines: Iterable[Line], *, paged: bool = True) -> None:
        """Print lines; on a terminal, many of them go through the pager."""
        texts = map(self._painted(sys.stdout), lines)
        if paged and self.is_paged:
            _page(texts)
        else:
            sys.stdout.writelines(texts)

    def note(self, text: str) -> None:
        """Print a remark to standard error, unless ``--quiet`` or ``--json``."""
        if not (self.options.quiet or self.is_json):
            sys.stderr.write(f"{harmless(text)}\n")

    def preview(self, lines: Iterable[Line]) -> None:
        """Print lines to standard error, before a question."""
        sys.stderr.writelines(map(self._painted(sys.stderr), lines))

    def _painted(self, stream: TextIO) -> Callable[[Line], str]:
        paint = painter(self.options.color, os.environ, stream)

        def painted(line: Line) -> str:
            texts = [harmless(text) for text, _ in line]
            styles = [style for _, style in line]
            return paint(tuple(zip(texts, styles, strict=True))) + "\n"

        return painted

    def table(
        self,
        rows: Iterable[Sequence[Cell]],
        right: Collection[int] = (),
        widths: dict[int, int] | None = None,
    ) -> Iterator[Line]:
        """Rows of cells as aligned lines, cut to the width of the screen.

        The columns ``right`` are aligned right. A table that is printed in parts hands
        ``widths`` on from part to part.
        """
        return map(self.fitted, aligned(rows, right, widths))

    def fitted(self, line: Line) -> Line:
        """A line, cut to the width of the screen."""
        room = self.columns
        if room is None:
            return line
        fitting: list[Span] = []
        for text, style in line:
            kept = cut(one_line(text), room, self.glyphs.ellipsis)
            fitting.append((kept, style))
            room -= width(kept)
            if kept != one_line(text) or room <= 0:
                break
        return tuple(fitting)


def _pager() -> str:
    return os.environ.get("HOLDFAST_PAGER", os.environ.get("PAGER", LESS)).strip()


def _page(texts: Iterable[str]) -> None:
    """Print lines at once if they fit on the screen, else through the pager.

    The pager gets each line as it is made: a long listing begins at once.
    """
    import shutil  # noqa: PLC0415 - loads three compressors

    rest = iter(texts)
    rows = shutil.get_terminal_size().lines - 1
    first = list(itertools.islice(rest, rows + 1))
    lines = itertools.chain(first, rest)
    if len(first) > rows:
        os.environ["PAGER"] = _pager()  # the only way to tell click which one
        click.echo_via_pager(_without_last_break(lines), color=True)
    else:
        sys.stdout.writelines(lines)


def _without_last_break(lines: Iterable[str]) -> Iterator[str]:
    """The same text without the last line break, which click adds."""
    before = ""
    for line in lines:
        yield before + line.removesuffix("\n")
        before = "\n"
