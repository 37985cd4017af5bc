"""`holdfast completion`: the script that makes a shell complete."""

from __future__ import annotations

import click

from holdfast.cli import _command
from holdfast.cli._session import Session
from holdfast.cli._shells import SHELLS, script


@_command.command("completion")
@click.argument("shell", type=click.Choice(SHELLS), metavar="SHELL")
def command(session: Session, *, shell: str) -> None:
    """Print what makes SHELL complete commands, threads, labels and tags.

    SHELL is bash, zsh or fish. In bash, this line of ~/.bashrc will do:
    eval "$(holdfast completion bash)"
    """
    # Imported here: the commands import this module.
    from holdfast.cli._commands import ROOT  # noqa: PLC0415

    text = script(ROOT, shell)
    lines = [((line, ""),) for line in text.splitlines()]
    session.out.answer("completion/1", {"shell": shell, "script": text}, lines)
