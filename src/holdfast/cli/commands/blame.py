"""`holdfast blame`: which checkpoint set a value."""

from __future__ import annotations

import click

from holdfast._engine.threads.blame import Blame
from holdfast.cli import _command
from holdfast.cli._completion import REFERENCE
from holdfast.cli._invocation import Invocation
from holdfast.cli._lines import marks
from holdfast.cli._resolve import locate
from holdfast.cli.terminal.tables import Cell, spaced
from holdfast.diff import excerpt
from holdfast.views.documents import checkpoint_document, plain
from holdfast.views.references import Revision, shown_reference


@_command.command("blame")
@click.argument("path")
@click.argument("ref", type=REFERENCE, default="@")
def command(cli: Invocation, *, path: str, ref: str) -> None:
    """Show which checkpoint last set a value.

    PATH is written as messages[3].content or /messages/3/content. The search goes
    back from the checkpoint REF, which is the head of the only thread by default.
    """
    with cli.reading() as store:
        target = locate(store, ref)
        found = target.thread.blame(path, target.checkpoint)
        checkpoint = found.checkpoint
        reference = shown_reference(store, checkpoint, target.thread)
        row: list[Cell] = [
            spaced([(reference, "reference"), *marks(checkpoint)]),
            (cli.out.time(checkpoint.saved_at), "faint"),
            (checkpoint.kind, ""),
            (found.path, "name"),
            (excerpt(found.value), ""),
        ]
        document = {"reference": reference, **_document(target, found)}
    cli.out.answer("blame/1", document, cli.out.table([row]))


def _document(target: Revision, found: Blame) -> dict[str, object]:
    previous = found.previous
    return {
        "thread": target.thread.id,
        "path": found.path,
        "value": plain(found.value),
        "checkpoint": checkpoint_document(found.checkpoint),
        "previous": checkpoint_document(previous) if previous else None,
    }
