"""Long output goes through a pager."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterable, Iterator

import click

LESS = "less -FRX"


def has_pager() -> bool:
    """True if there is a terminal, and a pager for it."""
    return sys.stdout.isatty() and bool(_pager())


def _pager() -> str:
    return os.environ.get("HOLDFAST_PAGER", os.environ.get("PAGER", LESS)).strip()


def page(texts: Iterable[str]) -> None:
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
