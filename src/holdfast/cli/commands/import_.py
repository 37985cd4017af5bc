"""`holdfast import`: take in an archive, or what an earlier system kept."""

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
from holdfast.cli import _command, _exits
from holdfast.cli._counted import counted
from holdfast.cli._session import Session
from holdfast.cli.terminal.output import Line
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
    help="What PATH is: archive, or one of those named above; auto tells by itself.",
)
@click.option(
    "-n", "--dry-run", is_flag=True, help="Only read, and tell what it holds."
)
def command(session: Session, *, path: str, format_: str | None, dry_run: bool) -> int:
    """Take in an archive, or the files of an earlier system, from PATH.

    The store is made if `--store` names a new one. An archive (- reads it from standard
    input) comes as a whole or not at all; threads that are there as they are in it are
    passed over, others of the same name are a conflict. Foreign formats are aether,
    cortex, echo, langgraph, oxios, smooth, smooth-sqlite and those that installed
    packages add: the source is never changed, what is damaged is listed and stops
    nothing else, and importing again adds nothing.
    """
    with _opened(session, dry_run=dry_run) as store:
        format_ = None if format_ == AUTO else format_
        if format_ == ARCHIVE or (format_ is None and _is_archive(path)):
            return _import_archive(session, store, path, dry_run=dry_run)
        _check_format(format_)
        return _import_foreign(session, store, path, format_, dry_run=dry_run)


def _opened(session: Session, *, dry_run: bool) -> Store:
    """The store, which may be new; to look at what would come, none is made."""
    if session.settings.read_only and not dry_run:
        raise Unsupported("import changes the store; leave --read-only out")
    with suppress(NotFound):
        return session.reading() if dry_run else session.writing()
    if dry_run:
        return holdfast.open(":memory:")
    return holdfast.open(session.address, busy_timeout=session.settings.wait)


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
        raise click.UsageError(f"{format_} is none of: {', '.join(known)}")


# --- archives -------------------------------------------------------------------------


def _import_archive(session: Session, store: Store, path: str, *, dry_run: bool) -> int:
    source = sys.stdin.buffer if path == STREAM else path
    with session.progress("Importing") as progress:
        found = store.import_archive(source, dry_run=dry_run, progress=progress)
    document = {"path": path, "format": ARCHIVE, "dry_run": dry_run}
    session.out.answer(
        "import/1",
        {**document, **msgspec.to_builtins(found)},
        [] if session.settings.quiet else _archive_lines(found, dry_run=dry_run),
    )
    return _exits.OK


def _archive_lines(found: Imported, *, dry_run: bool) -> Iterator[Line]:
    verb = "would import" if dry_run else "imported"
    checkpoints = counted(found.checkpoints, "checkpoint")
    threads = counted(len(found.threads), "thread")
    entries = counted(found.journal_entries, "journal entry")
    yield ((f"{verb} {checkpoints} in {threads}, {entries}", ""),)
    if found.skipped:
        text = f"already there, as it is: {counted(len(found.skipped), 'thread')}"
        yield ((text, "faint"),)


# --- foreign formats ------------------------------------------------------------------


def _import_foreign(
    session: Session, store: Store, path: str, format_: str | None, *, dry_run: bool
) -> int:
    if not (is_address(path) or os.path.exists(path)):
        raise NotFound(f"{path} is not there; check the path")
    with session.progress("Importing") as progress:
        report = store.import_from(
            path, format=format_, dry_run=dry_run, progress=progress
        )
    session.out.answer("import/1", msgspec.to_builtins(report), _report_lines(report))
    if report.damaged:
        return _exits.DAMAGED
    return _exits.CONFLICT if report.conflicts else _exits.OK


def _report_lines(report: Report) -> Iterator[Line]:
    for text in str(report).splitlines():
        yield ((text, ""),)
