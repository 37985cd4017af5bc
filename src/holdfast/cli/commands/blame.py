"""`holdfast blame`: which checkpoint set a value."""

from __future__ import annotations

import click

from holdfast._engine.threads.blame import Blame
from holdfast.cli import _command, _documents
from holdfast.cli._names import REFERENCE, Place, locate, shown_reference
from holdfast.cli._session import Session
from holdfast.cli.terminal.output import Cell, plain
from holdfast.cli.terminal.tables import spaced
from holdfast.diff import excerpt


@_command.command("blame")
@click.argument("path")
@click.argument("ref", type=REFERENCE, default="@")
def command(session: Session, *, path: str, ref: str) -> None:
    """Tell which checkpoint last set what stands at PATH.

    A path is written as messages[3].content or /messages/3/content; REF is where to
    look from, the head of the only thread without it.
    """
    with session.reading() as store:
        place = locate(store, ref)
        found = place.thread.blame(path, place.checkpoint)
        checkpoint = found.checkpoint
        reference = shown_reference(store, checkpoint, place.thread)
        row: list[Cell] = [
            spaced([(reference, "reference"), *_documents.marks(checkpoint)]),
            (_documents.time(checkpoint.saved_at), "faint"),
            (checkpoint.kind, ""),
            (found.path, "name"),
            (excerpt(found.value), ""),
        ]
        document = {"reference": reference, **_document(place, found)}
    session.out.answer("blame/1", document, session.out.table([row]))


def _document(place: Place, found: Blame) -> dict[str, object]:
    previous = found.previous
    return {
        "thread": place.thread.id,
        "path": found.path,
        "value": plain(found.value),
        "checkpoint": _documents.checkpoint_document(found.checkpoint),
        "previous": _documents.checkpoint_document(previous) if previous else None,
    }
