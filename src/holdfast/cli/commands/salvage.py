"""`holdfast salvage`: a new store with all that can be read of a damaged one."""

from __future__ import annotations

import click
import msgspec

import holdfast
from holdfast._engine.upkeep.salvage import Salvaged
from holdfast.cli import _command, _status
from holdfast.cli._given_key import given_key
from holdfast.cli._invocation import Invocation
from holdfast.cli._salvaged import salvaged_lines
from holdfast.cli._store_address import given_scope


@_command.command("salvage")
@click.argument("file", type=click.Path())
def command(cli: Invocation, *, file: str) -> int:
    """Copy all that can be read of a damaged store to a new one.

    The new one is FILE, or dir:FOLDER. Works on a store that is too damaged to be
    opened, and never changes it. The exit status is 4 if something could not be saved.
    """
    saved = _salvaged(cli, file)
    document = {"file": file, **msgspec.to_builtins(saved)}
    cli.out.answer("salvage/1", document, salvaged_lines(saved, file))
    return _status.DAMAGED if saved.lost else _status.OK


def _salvaged(cli: Invocation, file: str) -> Salvaged:
    if given_scope(cli.options) is None:
        return holdfast.salvage(cli.address, file, key=given_key())
    with cli.reading() as store:
        return store.salvage(file)
