"""When to colour, and the colours by meaning; rich is loaded only to use them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TextIO, TypeAlias

from holdfast.cli._settings import When

Paint: TypeAlias = Callable[[str, str], str]

STYLES = MappingProxyType(
    {
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
)


def painter(when: When, environ: Mapping[str, str], stream: TextIO) -> Paint:
    """What puts a style around a text, or nothing where nobody wants colour."""
    if not wants_colour(when, environ, is_terminal=stream.isatty()):
        return _unpainted
    try:
        from rich.color import ColorSystem  # noqa: PLC0415 - only for a terminal
        from rich.style import Style  # noqa: PLC0415 - likewise
    except ImportError:
        return _unpainted
    known = {name: Style.parse(style) for name, style in STYLES.items()}
    return lambda text, style: (
        known[style].render(text, color_system=ColorSystem.STANDARD) if style else text
    )


def wants_colour(when: When, environ: Mapping[str, str], *, is_terminal: bool) -> bool:
    """The flag decides, then NO_COLOR, then what forces colour, then the terminal."""
    if when != "auto":
        return when == "always"
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR") or environ.get("CLICOLOR_FORCE"):
        return True
    return is_terminal and environ.get("TERM") != "dumb"


def _unpainted(text: str, style: str) -> str:  # noqa: ARG001 - the shape of a `Paint`
    return text
