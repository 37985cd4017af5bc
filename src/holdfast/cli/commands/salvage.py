"""`holdfast salvage`: a new store with all that can be read of a damaged one."""

from __future__ import annotations

import click
import msgspec

from holdfast.cli import _command, _status
from holdfast.cli._invocation import Invocation
from holdfast.cli._salvaged import salvage_to, salvaged_lines


@_command.command("salvage")
@click.argument("file", type=click.Path())
def command(cli: Invocation, *, file: str) -> int:
    """Copy all that can be read of a damaged store to a new one.

    The new one is FILE, or dir:FOLDER. Works on a store that is too damaged to be
    opened, and never changes it. The exit status is 4 if something could not be saved.
    """
    saved = salvage_to(cli, file)
    document = {"file": file, **msgspec.to_builtins(saved)}
    cli.out.answer("salvage/1", document, salvaged_lines(saved, file))
    return _status.DAMAGED if saved.lost else _status.OK
