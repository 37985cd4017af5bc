"""`holdfast import`: import an archive, or the files of another system."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress

import click
import msgspec

import holdfast
from holdfast._api.store import Store
from holdfast.archive import Imported
from holdfast.cli import _command, _exit_status
from holdfast.cli._invocation import Invocation
from holdfast.cli._text import counted
from holdfast.cli.terminal.tables import Line
from holdfast.errors import NotFound, Unsupported
from holdfast.importers import Report, formats
from holdfast.importers.langgraph import is_address

STREAM, ARCHIVE, AUTO = "-", "archive", "auto"
MAGIC = b"holdfast archive "
MOST_SHOWN = 20


@_command.command("import")
@click.argument("path", type=click.Path(allow_dash=True))
@click.option(
    "--from",
    "format_",
    metavar="FORMAT",
    help="The format of PATH: archive, auto, or a foreign format; auto by default.",
)
@click.option(
    "-n",
    "--dry-run",
    is_flag=True,
    help="Change nothing, only show what would be imported.",
)
def command(
    invocation: Invocation, *, path: str, format_: str | None, dry_run: bool
) -> int:
    """Import an archive, or the files of another system, from PATH.

    The store is created if `--store` names a new one. An archive (- reads standard
    input) is imported completely or not at all: threads that the store already has
    unchanged are skipped, other threads of the same name are a conflict. Foreign
    formats are aether, cortex, echo, langgraph, oxios, smooth, smooth-sqlite and those
    of installed packages. A foreign source is never changed, damaged parts of it are
    listed and do not stop the import, and importing it again adds nothing.
    """
    with _opened(invocation, dry_run=dry_run) as store:
        format_ = None if format_ == AUTO else format_
        if format_ == ARCHIVE or (format_ is None and _is_archive(path)):
            return _import_archive(invocation, store, path, dry_run=dry_run)
        _check_format(format_)
        return _import_foreign(invocation, store, path, format_, dry_run=dry_run)


def _opened(invocation: Invocation, *, dry_run: bool) -> Store:
    """The store, which is created if needed; ``--dry-run`` creates none."""
    if invocation.options.read_only and not dry_run:
        raise Unsupported("import changes the store; leave --read-only out")
    with suppress(NotFound):
        return invocation.reading() if dry_run else invocation.writing()
    if dry_run:
        return holdfast.open(":memory:")
    return holdfast.open(invocation.address, busy_timeout=invocation.options.wait)


def _is_archive(path: str) -> bool:
    if path == STREAM:
        return True
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def _check_format(format_: str | None) -> None:
    known = [ARCHIVE, *sorted(formats())]
    if format_ is not None and format_ not in known:
        raise click.UsageError(f"{format_} is not one of: {', '.join(known)}")


# --- archives -------------------------------------------------------------------------


def _import_archive(
    invocation: Invocation, store: Store, path: str, *, dry_run: bool
) -> int:
    source = sys.stdin.buffer if path == STREAM else path
    with invocation.progress("Importing") as progress:
        found = store.import_archive(source, dry_run=dry_run, progress=progress)
    document = {"path": path, "format": ARCHIVE, "dry_run": dry_run}
    invocation.out.answer(
        "import/1",
        {**document, **msgspec.to_builtins(found)},
        [] if invocation.options.quiet else _archive_lines(found, dry_run=dry_run),
    )
    return _exit_status.OK


def _archive_lines(found: Imported, *, dry_run: bool) -> Iterator[Line]:
    verb = "would import" if dry_run else "imported"
    checkpoints = counted(found.checkpoints, "checkpoint")
    threads = counted(len(found.threads), "thread")
    entries = counted(found.journal_entries, "journal entry")
    yield ((f"{verb} {checkpoints} in {threads}, {entries}", ""),)
    if found.skipped:
        text = (
            f"already in the store, unchanged: {counted(len(found.skipped), 'thread')}"
        )
        yield ((text, "faint"),)


# --- foreign formats ------------------------------------------------------------------


def _import_foreign(
    invocation: Invocation,
    store: Store,
    path: str,
    format_: str | None,
    *,
    dry_run: bool,
) -> int:
    if not (is_address(path) or os.path.exists(path)):
        raise NotFound(f"{path} does not exist; check the path")
    with invocation.progress("Importing") as progress:
        report = store.import_from(
            path, format=format_, dry_run=dry_run, progress=progress
        )
    invocation.out.answer(
        "import/1", msgspec.to_builtins(report), _report_lines(report)
    )
    if report.damaged:
        return _exit_status.DAMAGED
    return _exit_status.CONFLICT if report.conflicts else _exit_status.OK


def _report_lines(report: Report) -> Iterator[Line]:
    for text in str(report).splitlines():
        yield ((text, ""),)
