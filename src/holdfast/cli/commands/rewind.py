"""`holdfast rewind`: move a head to an earlier checkpoint."""

from __future__ import annotations

from collections.abc import Iterator

import click

from holdfast.cli import _command, _status
from holdfast.cli._completion import REFERENCE
from holdfast.cli._confirmation import status_of_preview
from holdfast.cli._effects import behind_lines
from holdfast.cli._head_moves import print_move
from holdfast.cli._invocation import Invocation
from holdfast.cli._lines import change_lines, value_lines
from holdfast.cli._options import dry_run_option, flag, yes_option
from holdfast.cli._resolve import locate
from holdfast.cli._text import counted
from holdfast.cli.terminal.output import Output
from holdfast.cli.terminal.tables import Line
from holdfast.diff import WIDTH
from holdfast.views.effects import left_behind_by_rewind
from holdfast.views.rewind import RewindPreview, preview_document, preview_rewind


@_command.command("rewind")
@click.argument("ref", type=REFERENCE)
@flag("--hard", help="Delete what was saved after REF for good.")
@flag("--diff", "whole", help="Show every change, not only a summary.")
@dry_run_option
@yes_option
def command(
    cli: Invocation, *, ref: str, hard: bool, whole: bool, dry_run: bool, yes: bool
) -> int:
    """Move the head of a thread to an earlier checkpoint.

    It moves to REF. Later checkpoints stay: THREAD@{1} is the head before the rewind,
    and `undo` goes back to it. Tool calls that were made since cannot be taken back:
    `effects` lists them. Shows what would change and asks first.
    """
    opened = cli.reading if dry_run else cli.writing
    with opened() as store:
        target = locate(store, ref)
        if dry_run or not yes:
            preview = preview_rewind(store, target)
            lines = _lines(cli.out, preview, hard=hard, whole=whole)
            document = preview_document(preview)
            status = status_of_preview(
                cli, "rewind/1", document, lines, dry_run=dry_run
            )
            if status is not None:
                return status
        old = target.thread.get()
        behind = left_behind_by_rewind(target.thread, target.checkpoint)
        target.thread.rewind(target.checkpoint, hard=hard)
        print_move(cli, store, target.thread, "rewind", old, behind)
    return _status.OK


def _lines(
    out: Output, preview: RewindPreview, *, hard: bool, whole: bool
) -> Iterator[Line]:
    name, old, new = preview.thread, preview.old, preview.new
    yield (
        ("would move ", ""),
        (name, "name"),
        (f" @{old.step} {out.glyphs.arrow} @{new.step}", ""),
        (f", {_distance(preview.steps)}", "faint"),
    )
    shown = change_lines if whole else value_lines
    yield from map(out.fitted, shown(preview.changes, "  ", out.columns or WIDTH))
    for change in preview.files:
        yield out.fitted(((f"  file {change.op}: {change.path}", "name"),))
    if preview.files:
        yield (("  the folder stays as it is; `restore` brings files back", "faint"),)
    if preview.unsaved:
        text = f"  {counted(preview.unsaved, 'message')} not in a checkpoint yet"
        yield ((f"{text}, passed over", "bad"),)
    since = new.id if preview.steps is None else f"@{new.step}"
    listing = f"holdfast effects {name} --since {since}"
    yield from behind_lines(out, preview.behind, listing)
    if hard:
        yield (("what was saved after it is deleted; this cannot be undone", "bad"),)
    else:
        yield ((f"the current head can still be reached as {name}@{{1}}", "faint"),)


def _distance(steps: int | None) -> str:
    return "on another line" if steps is None else f"{counted(steps, 'step')} back"
