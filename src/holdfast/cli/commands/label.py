"""`holdfast label`: the label of a checkpoint."""

from __future__ import annotations

import click

from holdfast.cli import _command
from holdfast.cli._completion import REFERENCE
from holdfast.cli._invocation import Invocation
from holdfast.cli._lines import marks
from holdfast.cli._options import flag
from holdfast.cli._resolve import locate
from holdfast.cli.terminal.tables import spaced
from holdfast.views.documents import checkpoint_document
from holdfast.views.references import shown_reference


@_command.command("label")
@click.argument("ref", type=REFERENCE)
@click.argument("label", required=False)
@flag("-d", "--delete", help="Remove the label.")
def command(cli: Invocation, *, ref: str, label: str | None, delete: bool) -> None:
    """Label a checkpoint, remove its label, or show it.

    Sets the LABEL of the checkpoint REF; without a LABEL, shows the one it has.
    """
    if delete and label is not None:
        raise click.UsageError("--delete takes no label; leave the label out")
    changes = delete or label is not None
    with cli.writing() if changes else cli.reading() as store:
        target = locate(store, ref)
        checkpoint = target.checkpoint
        if changes:
            checkpoint = target.thread.label(label, checkpoint)
        reference = shown_reference(store, checkpoint, target.thread)
    line = spaced([(reference, "reference"), *marks(checkpoint)])
    cli.out.done("label/1", checkpoint_document(checkpoint), *line)
