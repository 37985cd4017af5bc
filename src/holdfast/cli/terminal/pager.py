"""Long output goes through a pager."""

from __future__ import annotations

import contextlib
import itertools
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping

LESS = "less -FRX"


def page(texts: Iterable[str], environ: Mapping[str, str]) -> None:
    """Print texts at once if they fit on the screen, else through the pager."""
    rest = iter(texts)
    rows = shutil.get_terminal_size().lines - 1
    first = list(itertools.islice(rest, rows + 1))
    if len(first) > rows:
        pager = _start(environ)
        if pager is not None:
            _feed(pager, itertools.chain(first, rest))
            return
    for text in itertools.chain(first, rest):
        sys.stdout.write(text)


def _start(environ: Mapping[str, str]) -> subprocess.Popen[str] | None:
    wanted = environ.get("HOLDFAST_PAGER", environ.get("PAGER", LESS))
    command = shlex.split(wanted)
    if not command or command == ["cat"]:
        return None
    try:
        return subprocess.Popen(  # noqa: S603 - what the user chose to page with
            command, stdin=subprocess.PIPE, text=True, encoding=sys.stdout.encoding
        )
    except OSError:
        return None


def _feed(pager: subprocess.Popen[str], texts: Iterable[str]) -> None:
    assert pager.stdin is not None
    # Whoever leaves the pager early has seen enough.
    with contextlib.suppress(BrokenPipeError), pager.stdin:
        pager.stdin.writelines(texts)
    while True:
        try:
            pager.wait()
        except KeyboardInterrupt:
            continue  # it is the pager's own key
        return
