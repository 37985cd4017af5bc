"""Commands that take something away show it first and ask before they do it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable

import click

from holdfast.cli._session import Session
from holdfast.cli.terminal.output import Line

QUESTION = "Proceed? [y/N] "


def agreed(session: Session, preview: Iterable[Line], *, yes: bool) -> bool:
    """Whether to go on: ``--yes`` was given, or a person at a terminal says so.

    Without a terminal, or with ``--json``, it is a usage error that names the command
    to run. Where it is ``False``, end with the status `NEGATIVE`.
    """
    if yes:
        return True
    if session.out.is_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        again = shlex.join(["holdfast", *session.arguments, "--yes"])
        raise click.UsageError(f"nobody is here to be asked; run: {again}")
    session.out.preview(preview)
    sys.stderr.write(QUESTION)
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
