"""`holdfast label`: the label of a checkpoint."""

from __future__ import annotations

import click

from holdfast.cli import _command, _documents
from holdfast.cli._names import REFERENCE, locate, shown_reference
from holdfast.cli._session import Session
from holdfast.cli.terminal.tables import spaced


@_command.command("label")
@click.argument("ref", type=REFERENCE)
@click.argument("label", required=False)
@click.option("-d", "--delete", is_flag=True, help="Take the label away.")
def command(session: Session, *, ref: str, label: str | None, delete: bool) -> None:
    """Give the checkpoint REF a LABEL, take it away, or show what it has."""
    if delete and label is not None:
        raise click.UsageError("a label is taken away without naming it")
    changes = delete or label is not None
    with session.writing() if changes else session.reading() as store:
        place = locate(store, ref)
        checkpoint = place.checkpoint
        if changes:
            checkpoint = place.thread.label(label, checkpoint)
        reference = shown_reference(store, checkpoint, place.thread)
    line = spaced([(reference, "reference"), *_documents.marks(checkpoint)])
    session.out.done("label/1", _documents.checkpoint_document(checkpoint), *line)
