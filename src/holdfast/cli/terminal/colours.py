"""Colours of styles, and when they are used; rich is loaded only if needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TextIO, TypeAlias

from holdfast._api.plugins import missing_extra
from holdfast.cli._shared_options import When
from holdfast.cli.terminal.tables import Line

Paint: TypeAlias = Callable[[Line], str]

STYLES = {
    "added": "green",
    "removed": "red",
    "changed": "yellow",
    "name": "bold",
    "reference": "yellow",
    "head": "bold cyan",
    "label": "magenta",
    "tag": "magenta",
    "title": "bold",
    "faint": "dim",
    "good": "green",
    "bad": "bold red",
}


def painter(when: When, environ: Mapping[str, str], stream: TextIO) -> Paint:
    """The function that makes a text of a line, with colours if they are wanted."""
    if not wants_colour(when, environ, is_terminal=stream.isatty()):
        return _unpainted
    try:
        from rich.color import ColorSystem  # noqa: PLC0415 - only for a terminal
        from rich.style import Style  # noqa: PLC0415 - likewise
    except ImportError as error:
        if when == "always":
            raise missing_extra("colours", "cli") from error
        return _unpainted
    colours = ColorSystem.STANDARD
    known = {name: Style.parse(style) for name, style in STYLES.items()}

    def painted(line: Line) -> str:
        return "".join(
            known[style].render(text, color_system=colours) if style else text
            for text, style in line
        )

    return painted


def wants_colour(when: When, environ: Mapping[str, str], *, is_terminal: bool) -> bool:
    """The option decides, then NO_COLOR, then FORCE_COLOR, then the terminal."""
    if when != "auto":
        return when == "always"
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR") or environ.get("CLICOLOR_FORCE"):
        return True
    return is_terminal and environ.get("TERM") != "dumb"


def _unpainted(line: Line) -> str:
    return "".join([text for text, _ in line])
