"""`holdfast seal`: a text to keep elsewhere, by which an older store is recognised."""

from __future__ import annotations

from holdfast.cli import _command
from holdfast.cli._invocation import Invocation


@_command.command("seal")
def command(cli: Invocation) -> None:
    """Print a seal of all that the store holds, to be kept elsewhere.

    `verify --seal FILE` tells whether the store still holds it, or was put back to an
    older state. The seal of an encrypted store can be made only with its key.
    """
    with cli.reading() as store:
        seal = store.seal()
    cli.out.answer("seal/1", {"seal": seal}, [((seal, ""),)])
