"""`holdfast rewind`: move a head to an earlier checkpoint."""

from __future__ import annotations

from collections.abc import Iterator

import click

from holdfast._values.records import Checkpoint
from holdfast.cli import _command, _status
from holdfast.cli._completion import REFERENCE
from holdfast.cli._confirmation import confirmed
from holdfast.cli._head_moves import print_move
from holdfast.cli._invocation import Invocation
from holdfast.cli._lines import change_lines
from holdfast.cli._options import dry_run_option, flag, yes_option
from holdfast.cli._resolve import locate
from holdfast.cli.terminal.output import Output
from holdfast.cli.terminal.tables import Line
from holdfast.diff import Diff
from holdfast.views.differences import change_documents
from holdfast.views.documents import checkpoint_document
from holdfast.views.references import Revision


@_command.command("rewind")
@click.argument("ref", type=REFERENCE)
@flag("--hard", help="Delete what was saved after REF for good.")
@dry_run_option
@yes_option
def command(cli: Invocation, *, ref: str, hard: bool, dry_run: bool, yes: bool) -> int:
    """Move the head of a thread to REF.

    Later checkpoints stay: THREAD@{1} is the head before the rewind, and `undo` goes
    back to it. Shows what would change and asks first.
    """
    opened = cli.reading if dry_run else cli.writing
    with opened() as store:
        target = locate(store, ref)
        old = target.thread.get()
        if dry_run or not yes:
            changes = target.thread.diff(old, target.checkpoint)
            preview = _preview(cli.out, target, old, changes, hard=hard)
            if dry_run:
                document = _document(target, old, changes)
                cli.out.answer("rewind/1", document, preview)
                return _status.OK
            if not confirmed(cli, preview, yes=yes):
                return _status.NEGATIVE
        target.thread.rewind(target.checkpoint, hard=hard)
        print_move(cli, store, target.thread, "rewind", old)
    return _status.OK


def _document(target: Revision, old: Checkpoint, changes: Diff) -> dict[str, object]:
    return {
        "dry_run": True,
        "thread": target.thread.id,
        "from": checkpoint_document(old),
        "to": checkpoint_document(target.checkpoint),
        "changes": change_documents(changes),
    }


def _preview(
    out: Output, target: Revision, old: Checkpoint, changes: Diff, *, hard: bool
) -> Iterator[Line]:
    name, step = target.thread.id, target.checkpoint.step
    yield (
        ("would move ", ""),
        (name, "name"),
        (f" @{old.step} {out.glyphs.arrow} @{step}", ""),
    )
    yield from map(out.fitted, change_lines(changes, "  "))
    if hard:
        yield (("what was saved after it is deleted; this cannot be undone", "bad"),)
    else:
        yield ((f"the current head can still be reached as {name}@{{1}}", "faint"),)
