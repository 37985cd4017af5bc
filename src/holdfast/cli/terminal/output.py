"""What a command prints: one JSON document, a stream of them, or lines of text.

Standard output is for what was asked, standard error for everything else.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TextIO

import orjson

from holdfast._values import codec
from holdfast.cli._settings import Settings
from holdfast.cli.terminal.colours import painter
from holdfast.cli.terminal.escape import cut, escaped, harmless, one_line, width
from holdfast.cli.terminal.glyphs import ASCII, UNICODE, Glyphs
from holdfast.cli.terminal.pager import page
from holdfast.cli.terminal.tables import Cell, Line, Span, aligned

__all__ = ["Cell", "Line", "Output", "Span", "plain"]


class Output:
    """Prints what a command found, the way the options ask for."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    # --- documents --------------------------------------------------------------------

    @property
    def is_json(self) -> bool:
        """Whether a program reads this, and no person."""
        return self.settings.json or self.settings.ndjson

    def answer(
        self, schema: str, document: Mapping[str, object], lines: Iterable[Line]
    ) -> None:
        """Print a document with ``--json``, its ``lines`` otherwise.

        ``schema`` is such as "threads/1"; ``lines`` may be a generator, which is then
        run only if it is needed.
        """
        if self.is_json:
            self.document(schema, document)
        else:
            self.lines(lines)

    def done(self, schema: str, document: Mapping[str, object], *said: Span) -> None:
        """Print what was changed: a document, or a line unless ``--quiet``."""
        self.answer(schema, document, [] if self.settings.quiet else [said])

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

        ``names`` are what one and what many of them are called, such as ("thread",
        "threads"): the schemas are then "thread/1" and "threads/1", or the one given.
        """
        one, many = names
        if self.settings.ndjson:
            for item in items:
                self.item(f"{one}/1", item)
        elif self.settings.json:
            self.document(schema or f"{many}/1", {**rest, many: list(items)})
        else:
            self.lines(lines)

    def document(self, schema: str, document: Mapping[str, object]) -> None:
        """Print one JSON document."""
        whole = {"schema": f"holdfast.{schema}", **document}
        self._write_json(whole, orjson.OPT_INDENT_2)

    def item(self, schema: str, item: Mapping[str, object]) -> None:
        """Print one of a stream's documents (``--ndjson``), on a line of its own."""
        self._write_json({"schema": f"holdfast.{schema}", **item}, 0)

    def patch(self, operations: Sequence[object]) -> None:
        """Print a JSON patch, which is a bare list wherever it is used."""
        self._write_json(operations, orjson.OPT_INDENT_2)

    def _write_json(self, document: object, option: int) -> None:
        text = orjson.dumps(document, option=option).decode()
        sys.stdout.flush()
        sys.stdout.buffer.write(f"{escaped(text)}\n".encode())
        sys.stdout.buffer.flush()

    # --- text -------------------------------------------------------------------------

    @property
    def glyphs(self) -> Glyphs:
        """The signs that the terminal can show."""
        encoding = (sys.stdout.encoding or "").lower().replace("-", "")
        return ASCII if self.settings.ascii or encoding != "utf8" else UNICODE

    @property
    def columns(self) -> int | None:
        """How wide lines may be; ``None`` where nobody looks at a screen."""
        return shutil.get_terminal_size().columns if sys.stdout.isatty() else None

    def lines(self, lines: Iterable[Line]) -> None:
        """Print lines, on a terminal through a pager if they are many."""
        texts = map(self._painted(sys.stdout), lines)
        if sys.stdout.isatty() and self.settings.pager:
            page(texts, os.environ)
        else:
            for text in texts:
                sys.stdout.write(text)

    def note(self, text: str) -> None:
        """Say something beside the result, unless ``--quiet`` or a program listens."""
        if not (self.settings.quiet or self.is_json):
            sys.stderr.write(f"{harmless(text)}\n")

    def preview(self, lines: Iterable[Line]) -> None:
        """Print lines to standard error, where questions are asked."""
        for text in map(self._painted(sys.stderr), lines):
            sys.stderr.write(text)

    def _painted(self, stream: TextIO) -> Callable[[Line], str]:
        paint = painter(self.settings.color, os.environ, stream)
        return lambda line: "".join(paint(harmless(t), s) for t, s in line) + "\n"

    def table(
        self, rows: Iterable[Sequence[Cell]], right: Collection[int] = ()
    ) -> Iterator[Line]:
        """Rows of cells as aligned lines, cut to the screen if there is one.

        The columns ``right`` are aligned there.
        """
        return map(self.fitted, aligned(rows, right))

    def fitted(self, line: Line) -> Line:
        """A line without its end, if the screen is too narrow for it."""
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


def plain(value: object) -> Any:
    """A stored value for a document: exactly as the store has it, tags included."""
    return orjson.loads(codec.encode(value))
