"""The question that a command asks before it removes something."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Mapping

import click

from holdfast.cli import _status
from holdfast.cli._invocation import Invocation
from holdfast.cli.terminal.tables import Line

QUESTION = "Proceed? [y/N] "


def status_of_preview(
    cli: Invocation,
    schema: str,
    document: Mapping[str, object],
    lines: Iterable[Line],
    *,
    dry_run: bool,
) -> int | None:
    """Show what would happen, and ask unless it is a dry run.

    The status with which the command ends, ``None`` if it is to go on.
    """
    if dry_run:
        cli.out.answer(schema, document, lines)
        return _status.OK
    return None if _confirmed(cli, lines) else _status.NEGATIVE


def _confirmed(cli: Invocation, preview: Iterable[Line]) -> bool:
    """True if the user answers yes.

    Without a terminal, or with ``--json``, a usage error names the command to run.
    """
    if cli.out.is_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        again = shlex.join(["holdfast", *cli.arguments, "--yes"])
        raise click.UsageError(f"this needs a confirmation; run: {again}")
    cli.out.preview(preview)
    sys.stderr.write(QUESTION)
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
