"""`holdfast diff`: what changed from one checkpoint to another."""

from __future__ import annotations

from collections.abc import Iterator

import click

from holdfast._api.store import Store
from holdfast.cli import _command, _status
from holdfast.cli._completion import REFERENCE
from holdfast.cli._files import show_file_changes
from holdfast.cli._invocation import Invocation
from holdfast.cli._lines import change_lines
from holdfast.cli._options import bookkeeping_flag, flag, option
from holdfast.cli._resolve import head_of, locate, locate_fork, locate_range
from holdfast.cli.terminal.output import Output
from holdfast.cli.terminal.tables import Line
from holdfast.diff import Diff, Op
from holdfast.views.differences import (
    change_documents,
    counts,
    counts_by_value,
    difference,
    only_at,
)
from holdfast.views.documents import plain
from holdfast.views.references import Revision, shown_reference

SIGNS: dict[Op, str] = {"added": "+", "removed": "-", "changed": "~"}


@_command.command("diff")
@click.argument("a", type=REFERENCE)
@click.argument("b", type=REFERENCE, required=False)
@flag("--stat", help="Print only counts, for each value of the state.")
@option("--path", "PATH", "Only changes at this path.")
@flag("--files", help="Compare the files that were saved with the checkpoints.")
@flag("--exit-code", help="Exit with 1 if there is a difference.")
@flag("--json-patch", help="Print a JSON Patch (RFC 6902), with all changes.")
@bookkeeping_flag
def command(
    cli: Invocation,
    *,
    a: str,
    b: str | None,
    stat: bool,
    path: str | None,
    exit_code: bool,
    json_patch: bool,
    files: bool,
    bookkeeping: bool,
) -> int:
    """Show what changed between two checkpoints, value by value.

    Without B, A is compared with the head of its thread. A..B is the same as A B; A...B
    compares the newest checkpoint that A and B share with B. A path is written as
    messages[3].content or /messages/3/content.

    With --files, PATH is that of a file or folder of the workspace.
    """
    bookkeeping = bookkeeping or json_patch or cli.options.verbose
    with cli.reading() as store:
        old, new = _ends(store, a, b)
        if files:
            is_different = show_file_changes(cli, store, old, new, path)
            return _status.NEGATIVE if exit_code and is_different else _status.OK
        states = store.load(old.checkpoint), store.load(new.checkpoint)
        found = difference(*states, bookkeeping=bookkeeping)
        ends = (old, new)
        names = [shown_reference(store, end.checkpoint, end.thread) for end in ends]
    found = only_at(found, path)
    if json_patch:
        cli.out.patch(plain(found.patch()))
    else:
        lines = _lines(cli.out, names, found, stat=stat)
        cli.out.answer("diff/1", _document(old, new, found), lines)
    return _status.NEGATIVE if exit_code and len(found) else _status.OK


def _ends(store: Store, a: str, b: str | None) -> tuple[Revision, Revision]:
    ends = (locate_fork(store, a) or locate_range(store, a)) if b is None else None
    if ends is not None:
        return ends
    old = locate(store, a)
    if b is not None:
        return old, locate(store, b)
    return old, head_of(old.thread)


def _document(old: Revision, new: Revision, found: Diff) -> dict[str, object]:
    return {
        "a": {"thread": old.thread.id, "checkpoint": old.checkpoint.id},
        "b": {"thread": new.thread.id, "checkpoint": new.checkpoint.id},
        "added": len(found.added),
        "removed": len(found.removed),
        "changed": len(found.changed),
        "changes": change_documents(found),
    }


def _lines(out: Output, names: list[str], found: Diff, *, stat: bool) -> Iterator[Line]:
    old, new = names
    yield ((f"{old} {out.glyphs.arrow} {new}", "title"),)
    if not stat:
        yield from change_lines(found)
        return
    yield from out.table(
        [(name, "name"), *((f"{sign}{tally[op]}", op) for op, sign in SIGNS.items())]
        for name, tally in counts_by_value(found).items()
    )
    yield ((counts(found.changes), "faint"),)
