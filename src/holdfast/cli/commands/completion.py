"""`holdfast completion`: the script that makes a shell complete names."""

from __future__ import annotations

import click

from holdfast.cli import _command
from holdfast.cli._group import ROOT
from holdfast.cli._invocation import Invocation
from holdfast.cli._shell_completion import SHELLS, script


@_command.command("completion")
@click.argument("shell", type=click.Choice(SHELLS), metavar="SHELL")
def command(cli: Invocation, *, shell: str) -> None:
    """Print the completion script for a shell.

    SHELL is bash, zsh or fish. It then completes commands, threads, labels and tags.
    For bash, add this line to ~/.bashrc:
    eval "$(holdfast completion bash)"
    """
    text = script(ROOT, shell)
    lines = [((line, ""),) for line in text.splitlines()]
    cli.out.answer("completion/1", {"shell": shell, "script": text}, lines)
