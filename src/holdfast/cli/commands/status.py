"""`holdfast status`: what `holdfast` alone shows."""

from __future__ import annotations

from holdfast.cli import _command
from holdfast.cli._invocation import Invocation
from holdfast.cli._overview import overview


@_command.command("status")
def command(cli: Invocation) -> None:
    """Show the threads that were used last and what waits, as `holdfast` alone does."""
    overview(cli)
