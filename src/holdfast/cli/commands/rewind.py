"""`holdfast rewind`: move a head to an earlier checkpoint."""

from __future__ import annotations

from collections.abc import Iterator

import click

from holdfast._values.records import Checkpoint
from holdfast.cli import _changes, _command, _documents, _exits
from holdfast.cli._ask import agreed
from holdfast.cli._head_moves import tell_move
from holdfast.cli._names import REFERENCE, Place, locate
from holdfast.cli._options import dry_run_option, yes_option
from holdfast.cli._session import Session
from holdfast.cli.terminal.output import Line, Output
from holdfast.diff import Diff


@_command.command("rewind")
@click.argument("ref", type=REFERENCE)
@click.option("--hard", is_flag=True, help="Delete for good what was saved after it.")
@dry_run_option
@yes_option
def command(session: Session, *, ref: str, hard: bool, dry_run: bool, yes: bool) -> int:
    """Move the head of a thread to REF.

    What was ahead stays: THREAD@{1} is where the head was, and `undo` goes back there.
    Shows what would change and asks first.
    """
    opened = session.reading if dry_run else session.writing
    with opened() as store:
        place = locate(store, ref)
        old = place.thread.get()
        if dry_run or not yes:
            changes = place.thread.diff(old, place.checkpoint)
            preview = _preview(session.out, place, old, changes, hard=hard)
            if dry_run:
                document = _document(place, old, changes)
                session.out.answer("rewind/1", document, preview)
                return _exits.OK
            if not agreed(session, preview, yes=yes):
                return _exits.NEGATIVE
        place.thread.rewind(place.checkpoint, hard=hard)
        tell_move(session, store, place.thread, "rewind", old)
    return _exits.OK


def _document(place: Place, old: Checkpoint, changes: Diff) -> dict[str, object]:
    return {
        "dry_run": True,
        "thread": place.thread.id,
        "from": _documents.checkpoint_document(old),
        "to": _documents.checkpoint_document(place.checkpoint),
        "changes": list(map(_changes.change_document, changes.changes)),
    }


def _preview(
    out: Output, place: Place, old: Checkpoint, changes: Diff, *, hard: bool
) -> Iterator[Line]:
    name, step = place.thread.id, place.checkpoint.step
    yield (
        ("would move ", ""),
        (name, "name"),
        (f" @{old.step} {out.glyphs.arrow} @{step}", ""),
    )
    yield from map(out.fitted, _changes.change_lines(changes, "  "))
    if hard:
        yield (("what was saved after it is deleted and cannot be undone", "bad"),)
    else:
        yield ((f"the head of now stays within reach as {name}@{{1}}", "faint"),)
