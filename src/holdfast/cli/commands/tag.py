"""`holdfast tag`: tags of a checkpoint."""

from __future__ import annotations

import click

from holdfast.cli import _command, _documents
from holdfast.cli._names import REFERENCE, locate, shown_reference
from holdfast.cli._session import Session
from holdfast.cli.terminal.tables import spaced


@_command.command("tag")
@click.argument("ref", type=REFERENCE)
@click.argument("tags", nargs=-1, metavar="[TAG]...")
@click.option("-d", "--delete", is_flag=True, help="Take the tags away.")
def command(session: Session, *, ref: str, tags: tuple[str, ...], delete: bool) -> None:
    """Give the checkpoint REF a TAG or more, take them away, or show what it has."""
    if delete and not tags:
        raise click.UsageError("name the tags to take away")
    with session.writing() if tags else session.reading() as store:
        place = locate(store, ref)
        checkpoint = place.checkpoint
        if tags:
            change = place.thread.untag if delete else place.thread.tag
            checkpoint = change(*tags, ref=checkpoint)
        reference = shown_reference(store, checkpoint, place.thread)
    line = spaced([(reference, "reference"), *_documents.marks(checkpoint)])
    session.out.done("tag/1", _documents.checkpoint_document(checkpoint), *line)
