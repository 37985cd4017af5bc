"""Long output goes through a pager."""

from __future__ import annotations

import itertools
import os
import shutil
import sys
from collections.abc import Iterable, Iterator

import click

LESS = "less -FRX"


def page(texts: Iterable[str]) -> None:
    """Print lines at once if they fit on the screen, else through the pager."""
    rest = iter(texts)
    rows = shutil.get_terminal_size().lines - 1
    first = list(itertools.islice(rest, rows + 1))
    lines = itertools.chain(first, rest)
    pager = os.environ.get("HOLDFAST_PAGER", os.environ.get("PAGER", LESS)).strip()
    if len(first) > rows and pager:
        os.environ["PAGER"] = pager  # the only way to tell click which one
        click.echo_via_pager(_without_last_break(lines), color=True)
    else:
        sys.stdout.writelines(lines)


def _without_last_break(lines: Iterable[str]) -> Iterator[str]:
    """The same text without the last line break, which click adds."""
    before = ""
    for line in lines:
        yield before + line.removesuffix("\n")
        before = "\n"
