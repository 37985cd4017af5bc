"""`holdfast redo`: do again what was undone."""

from __future__ import annotations

import click

from holdfast.cli import _command
from holdfast.cli._head_moves import take_steps
from holdfast.cli._names import THREAD
from holdfast.cli._options import times_option
from holdfast.cli._session import Session


@_command.command("redo")
@click.argument("thread", type=THREAD, required=False)
@times_option
def command(session: Session, *, thread: str | None, times: int) -> None:
    """Do again what the last `undo` of THREAD took back.

    THREAD may be left out where there is only one.
    """
    take_steps(session, thread, "redo", times)
