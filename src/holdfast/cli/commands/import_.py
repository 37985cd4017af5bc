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
from holdfast.cli import _command, _status
from holdfast.cli._given_key import given_key
from holdfast.cli._invocation import Invocation
from holdfast.cli._options import dry_run_option, option
from holdfast.cli._store_address import given_scope
from holdfast.cli._text import counted
from holdfast.cli.terminal.tables import Line
from holdfast.errors import NotFound, Unsupported
from holdfast.importers import formats
from holdfast.importers.langgraph import is_address

STREAM, ARCHIVE, AUTO = "-", "archive", "auto"
MAGIC = b"holdfast archive "


@_command.command("import")
@click.argument("path", type=click.Path(allow_dash=True))
@option(
    "--from format_",
    "FORMAT",
    "The format of PATH: archive, auto, or a foreign format; auto by default.",
)
@dry_run_option
def command(cli: Invocation, *, path: str, format_: str | None, dry_run: bool) -> int:
    """Import an archive, or the files of another system.

    They are read from PATH. The store is created if `--store` names a new one. An
    archive (- reads standard input) is imported completely or not at all: threads that
    the store already has unchanged are skipped, other threads of the same name are a
    conflict. Foreign formats are aether, claude, cortex, echo, langgraph,
    openai-agents, oxios, smooth, smooth-sqlite and those of installed packages. A
    foreign source is never changed, damaged parts of it are listed and do not stop the
    import, and importing it again adds nothing.
    """
    with _opened(cli, dry_run=dry_run) as store:
        format_ = None if format_ == AUTO else format_
        if format_ == ARCHIVE or (format_ is None and _is_archive(path)):
            return _import_archive(cli, store, path, dry_run=dry_run)
        _check_format(format_)
        return _import_foreign(cli, store, path, format_, dry_run=dry_run)


def _opened(cli: Invocation, *, dry_run: bool) -> Store:
    """The store, which is created if needed; ``--dry-run`` creates none."""
    if cli.options.read_only and not dry_run:
        raise Unsupported("import changes the store; leave --read-only out")
    with suppress(NotFound):
        return cli.reading() if dry_run else cli.writing()
    if dry_run:
        return holdfast.open(":memory:")
    options = cli.options
    return holdfast.open(
        cli.address,
        busy_timeout=options.wait,
        key=given_key(),
        scope=given_scope(options),
    )


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


def _import_archive(cli: Invocation, store: Store, path: str, *, dry_run: bool) -> int:
    source = sys.stdin.buffer if path == STREAM else path
    with cli.progress("Importing") as progress:
        found = store.import_archive(source, dry_run=dry_run, progress=progress)
    document = {"path": path, "format": ARCHIVE, "dry_run": dry_run}
    cli.out.answer(
        "import/1",
        {**document, **msgspec.to_builtins(found)},
        [] if cli.options.quiet else _archive_lines(found, dry_run=dry_run),
    )
    return _status.OK


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
    cli: Invocation, store: Store, path: str, format_: str | None, *, dry_run: bool
) -> int:
    if not (is_address(path) or os.path.exists(path)):
        raise NotFound(f"{path} does not exist; check the path")
    with cli.progress("Importing") as progress:
        report = store.import_from(
            path, format=format_, dry_run=dry_run, progress=progress
        )
    lines = [((text, ""),) for text in str(report).splitlines()]
    cli.out.answer("import/1", msgspec.to_builtins(report), lines)
    if report.damaged:
        return _status.DAMAGED
    return _status.CONFLICT if report.conflicts else _status.OK
