"""Writing for a person: headings, prose, calls beside their results, checked claims.

Colour only on a terminal, and ASCII where the encoding is not UTF-8.
"""

from __future__ import annotations

import os
import sys
import textwrap
import time
from collections.abc import Callable, Mapping
from typing import Any, TextIO

WIDTH = 88
INDENT = "   "
RESULT_COLUMN = 46

STYLES = {
    "bold": "1",
    "dim": "2",
    "bad": "1;31",
    "good": "32",
    "code": "36",
    "number": "1;33",
}
ASCII = str.maketrans(
    {"✓": "ok", "✖": "X", "→": "->", "…": "...", "×": "x", "─": "-", "━": "="}
)


class Screen:
    """What is printed, at a pace a person can follow, and the claims made in it."""

    def __init__(self, file: TextIO = sys.stdout, *, fast: bool = False) -> None:
        self._file = file
        self._fast = fast
        self._colour = wants_colour(file, os.environ)
        self._ascii = (file.encoding or "").lower().replace("-", "") != "utf8"
        self.held = 0
        self.broken = 0

    # --- the text ---------------------------------------------------------------------

    def heading(self, number: int, title: str) -> None:
        self.write(f"\n{self.style(f'{number}  {title}', 'bold')}\n")

    def say(self, text: str) -> None:
        """A paragraph, folded to the width."""
        for line in textwrap.wrap(text, WIDTH - len(INDENT)):
            self.write(f"{INDENT}{line}\n")

    def code(self, source: str) -> None:
        self.write(f"{INDENT}{self.style(source, 'code')}\n")

    def result(self, source: str, result: str) -> None:
        """A call and what it gave, beside it if there is room."""
        call, arrow = f">>> {source}", f"→ {result}"
        if len(call) >= RESULT_COLUMN:
            self.code(call)
            call = ""
        self.write(
            f"{INDENT}{self.style(call.ljust(RESULT_COLUMN), 'code')} {arrow}\n"
        )

    def claim(self, text: str, *, holds: bool) -> None:
        """State something that was checked; the demo fails if it does not hold."""
        self.held += holds
        self.broken += not holds
        mark = self.style("✓", "good") if holds else self.style("✖ NOT SO:", "bad")
        self.write(f"{INDENT}{mark} {text}\n")

    def line(self, text: str = "") -> None:
        self.write(f"{INDENT}{text}".rstrip() + "\n")

    # --- below the line ---------------------------------------------------------------

    def style(self, text: str, name: str) -> str:
        return f"\x1b[{STYLES[name]}m{text}\x1b[0m" if self._colour else text

    def write(self, text: str) -> None:
        if self._ascii:
            text = text.translate(ASCII).encode("ascii", "replace").decode()
        self._file.write(text)
        self._file.flush()

    def pause(self, seconds: float) -> None:
        if not self._fast:
            time.sleep(seconds)


class Session:
    """Runs the Python it shows, so that the two cannot differ."""

    def __init__(self, screen: Screen, **names: Any) -> None:
        self._screen = screen
        self._names = names

    def run(self, source: str, show: Callable[[Any], str] = repr) -> Any:
        """Evaluate an expression or ``name = expression`` and print both sides."""
        # Keyword arguments have no blanks around their sign, an assignment has.
        name, _, expression = source.rpartition(" = ")
        value = eval(expression, self._names)
        self._names[name or "_"] = value
        self._screen.result(source, show(value))
        return value


def wants_colour(file: TextIO, environment: Mapping[str, str]) -> bool:
    if environment.get("NO_COLOR"):
        return False
    if environment.get("FORCE_COLOR"):
        return True
    return file.isatty() and environment.get("TERM") != "dumb"


def cut(text: str, width: int = WIDTH - len(INDENT)) -> str:
    """The text on one line of at most ``width`` characters."""
    return text if len(text) <= width else f"{text[: width - 1]}…"


def size(count: int) -> str:
    """Bytes as people read them."""
    return f"{count / 1e6:,.1f} MB" if count >= 1e6 else f"{count / 1e3:,.1f} kB"
