"""The question that a command asks before it removes something."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable

import click

from holdfast.cli._invocation import Invocation
from holdfast.cli.terminal.tables import Line

QUESTION = "Proceed? [y/N] "


def confirmed(cli: Invocation, preview: Iterable[Line], *, yes: bool) -> bool:
    """Whether to go on: ``--yes`` was given, or the user answers yes.

    Without a terminal, or with ``--json``, a usage error names the command to run.
    """
    if yes:
        return True
    if cli.out.is_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        again = shlex.join(["holdfast", *cli.arguments, "--yes"])
        raise click.UsageError(f"this needs a confirmation; run: {again}")
    cli.out.preview(preview)
    sys.stderr.write(QUESTION)
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
