"""`holdfast merge`: take over what a fork has changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

import click

from holdfast._engine.threads.merge import Merge, Side, file_lines
from holdfast.cli import _command, _status
from holdfast.cli._completion import REFERENCE, THREAD
from holdfast.cli._invocation import Invocation
from holdfast.cli._lines import value_lines
from holdfast.cli._options import dry_run_option
from holdfast.cli._resolve import locate, thread_named
from holdfast.cli._text import counted
from holdfast.cli.terminal.output import Output
from holdfast.cli.terminal.tables import Line
from holdfast.views.merge import merge_document

SCHEMA = "merge/1"


@_command.command("merge")
@click.argument("thread", type=THREAD)
@click.argument("ref", type=REFERENCE)
@click.option(
    "--prefer",
    type=click.Choice(get_args(Side)),
    help="Which side to take where both changed the same.",
)
@dry_run_option
def command(
    cli: Invocation, *, thread: str, ref: str, prefer: Side | None, dry_run: bool
) -> int:
    """Save in a thread what a fork of it has changed since both parted.

    The thread is THREAD, the fork REF. Mappings are merged by key, lists by element
    where each has an id; a transcript is never interleaved. What both changed to
    different values is a conflict: then nothing is saved, the paths are listed, and the
    exit status is 5.
    """
    opened = cli.reading if dry_run else cli.writing
    with opened() as store:
        ours, theirs = thread_named(store, thread), locate(store, ref).checkpoint
        found = ours.merge(theirs, prefer=prefer, dry_run=True)
        if not dry_run and not found.conflicts:
            found = ours.merge(theirs, prefer=prefer)
    lines = _lines(cli.out, thread, ref, found)
    cli.out.answer(SCHEMA, merge_document(thread, found), lines)
    return _status.CONFLICT if found.conflicts else _status.OK


def _lines(out: Output, thread: str, ref: str, found: Merge) -> Iterator[Line]:
    if not found.is_needed:
        yield ((thread, "name"), (f" has all of {ref}", ""))
        return
    if found.conflicts:
        count = counted(len(found.conflicts), "conflict")
        yield (
            (thread, "name"),
            (f" and {ref} have {count}; nothing is saved", "bad"),
        )
        yield from map(out.fitted, ((((f"  {c}", "bad"),)) for c in found.conflicts))
        yield (("decide with --prefer, or in Python with merge(resolve=)", "faint"),)
        return
    made = found.checkpoint
    if made is None:
        yield (("would merge ", ""), (ref, "name"), (f" into {thread}", ""))
    elif out.options.quiet:
        return
    else:
        yield ((thread, "name"), (f"@{made.step}  merged {ref}", ""))
    yield from (((f"  {line}", "changed"),) for line in file_lines(found.file_changes))
    yield from map(out.fitted, value_lines(found.changes, "  "))
