"""`holdfast undo`: undo the last move of a head."""

from __future__ import annotations

import click

from holdfast.cli import _command
from holdfast.cli._completion import THREAD
from holdfast.cli._head_moves import take_steps
from holdfast.cli._invocation import Invocation
from holdfast.cli._options import times_option


@_command.command("undo")
@click.argument("thread", type=THREAD, required=False)
@times_option
def command(cli: Invocation, *, thread: str | None, times: int) -> None:
    """Undo the last save or rewind of a thread; `redo` repeats it.

    THREAD may be left out if the store has only one.
    """
    take_steps(cli, thread, "undo", times)
