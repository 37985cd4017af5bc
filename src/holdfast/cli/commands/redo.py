"""`holdfast redo`: redo what was undone."""

from __future__ import annotations

import click

from holdfast.cli import _command
from holdfast.cli._completion import THREAD
from holdfast.cli._head_moves import take_steps
from holdfast.cli._invocation import Invocation
from holdfast.cli._options import times_option


@_command.command("redo")
@click.argument("thread", type=THREAD, required=False)
@times_option
def command(cli: Invocation, *, thread: str | None, times: int) -> None:
    """Redo what the last `undo` of a thread undid.

    THREAD may be left out if the store has only one.
    """
    take_steps(cli, thread, "redo", times)
