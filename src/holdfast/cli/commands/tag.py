"""`holdfast tag`: tags of a checkpoint."""

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


@_command.command("tag")
@click.argument("ref", type=REFERENCE)
@click.argument("tags", nargs=-1, metavar="[TAG]...")
@flag("-d", "--delete", help="Remove the tags.")
def command(cli: Invocation, *, ref: str, tags: tuple[str, ...], delete: bool) -> None:
    """Tag a checkpoint, remove its tags, or show them.

    Adds each TAG to the checkpoint REF; without a TAG, shows those it has.
    """
    if delete and not tags:
        raise click.UsageError("name the tags to remove")
    with cli.writing() if tags else cli.reading() as store:
        target = locate(store, ref)
        checkpoint = target.checkpoint
        if tags:
            change = target.thread.untag if delete else target.thread.tag
            checkpoint = change(*tags, ref=checkpoint)
        reference = shown_reference(store, checkpoint, target.thread)
    line = spaced([(reference, "reference"), *marks(checkpoint)])
    cli.out.done("tag/1", checkpoint_document(checkpoint), *line)
