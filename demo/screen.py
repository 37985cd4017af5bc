"""Writing for a person: headings, prose, calls beside their results, checked claims.

Colour only on a terminal, and ASCII where the encoding is not UTF-8.
"""

from __future__ import annotations

import codecs
import inspect
import os
import sys
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TextIO

WIDTH = 88
INDENT = "   "
BESIDE = 56  # the column of comments and results
PACE = 0.3  # of the pauses; the demo ends in half a minute, its installation included

STYLES = {"bold": "1", "dim": "2", "bad": "1;31", "good": "32", "code": "36"}
ASCII = str.maketrans({"✓": "+", "✖": "X", "→": "->", "…": "~", "─": "-"})


class Screen:
    """What is printed, at a pace a person can follow, and the claims made in it."""

    def __init__(self, file: TextIO = sys.stdout, *, fast: bool = False) -> None:
        self._file = file
        self._fast = fast or not file.isatty()  # not read along
        self._colour = wants_colour(file, os.environ)
        self._ascii = codecs.lookup(file.encoding or "ascii").name != "utf-8"
        self._end = ""
        self.held = 0
        self.broken = 0

    # --- text -------------------------------------------------------------------------

    def title(self, name: str, subtitle: str) -> None:
        self.write(f"{self.style(name, 'bold')}: {subtitle}\n\n")

    def heading(self, number: int, text: str) -> None:
        self.gap()
        self.write(f"{self.style(f'{number}  {text}', 'bold')}\n\n")

    def say(self, text: str) -> None:
        """A paragraph, folded to the width."""
        for line in textwrap.wrap(text, WIDTH - len(INDENT)):
            self.line(line)
        self.gap()

    def line(self, text: str) -> None:
        self.write(f"{INDENT}{text}\n")

    def gap(self) -> None:
        """One blank line, however often it is asked for."""
        if not self._end.endswith("\n\n"):
            self.write("\n")

    # --- Python -----------------------------------------------------------------------

    def code(self, source: str, comment: str = "") -> None:
        self._beside(source, f"# {comment}" if comment else "", "dim")

    def result(self, source: str, result: str) -> None:
        """A call and what it gave."""
        self._beside(f">>> {source}", f"→ {result}" if result else "", "bold")

    def _beside(self, source: str, note: str, style: str) -> None:
        code = self.style(source.ljust(BESIDE if note else 0), "code")
        self.line(f"{code} {self.style(note, style)}" if note else code)

    # --- numbers and claims -----------------------------------------------------------

    def row(self, name: str, cells: Sequence[str], style: str | None = None) -> None:
        text = f"{name:36}" + "".join(f"{cell:>14}" for cell in cells)
        self.line(self.style(text, style) if style else text)

    def rule(self) -> None:
        self.line("─" * (36 + 2 * 14))

    def claim(self, text: str, *, holds: bool) -> None:
        """State something that was checked; the demo fails if it does not hold."""
        self.held += holds
        self.broken += not holds
        self._marked(text, holds)

    def verdict(self) -> None:
        """How many of the claims held."""
        total = self.held + self.broken
        self._marked(f"{self.held} of {total} claims checked and true", not self.broken)

    def _marked(self, text: str, good: bool) -> None:
        mark = self.style("✓", "good") if good else self.style("✖ NOT SO:", "bad")
        self.line(f"{mark} {text}")

    # --- below the line ---------------------------------------------------------------

    def style(self, text: str, name: str) -> str:
        return f"\x1b[{STYLES[name]}m{text}\x1b[0m" if self._colour else text

    def write(self, text: str) -> None:
        if self._ascii:
            text = text.translate(ASCII).encode("ascii", "replace").decode()
        self._end = (self._end + text)[-2:]
        self._file.write(text)
        self._file.flush()

    def pause(self, seconds: float) -> None:
        if not self._fast:
            time.sleep(PACE * seconds)


class Session:
    """Runs the Python it shows, so that the two cannot differ."""

    def __init__(self, screen: Screen, **names: Any) -> None:
        self._screen = screen
        self._names = names

    def run(self, source: str) -> Any:
        """Show and run ``expression``, with its value, or ``name = expression``."""
        # Keyword arguments have no blanks around their sign, an assignment has.
        name, _, expression = source.rpartition(" = ")
        value = eval(expression, self._names)
        self._names[name or "_"] = value
        self._screen.result(source, "" if name else repr(value))
        return value


def wants_colour(file: TextIO, environment: Mapping[str, str]) -> bool:
    if environment.get("NO_COLOR"):
        return False
    if environment.get("FORCE_COLOR"):
        return True
    return file.isatty() and environment.get("TERM") != "dumb"


def line_of(function: Callable[..., object], fragment: str) -> str:
    """The one line of a function's source with a fragment in it: a true quotation."""
    lines = inspect.getsource(function).splitlines()
    [line] = [line for line in lines if fragment in line]
    return line.strip()


def cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def size(count: int) -> str:
    """Bytes as people read them."""
    return f"{count / 1e6:,.1f} MB" if count >= 1e6 else f"{count / 1e3:,.1f} kB"
