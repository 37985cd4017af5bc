"""`holdfast export`: a portable archive, or JSON Lines."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import BinaryIO

import click
import msgspec

from holdfast._api.store import Store
from holdfast._values.records import EPOCH
from holdfast.archive import Contents
from holdfast.cli import _command, _status
from holdfast.cli._completion import THREAD
from holdfast.cli._invocation import Invocation
from holdfast.cli._options import as_time, flag
from holdfast.cli._text import counted

STREAM = "-"


@_command.command("export")
@click.argument("file", type=click.Path(allow_dash=True))
@click.argument("threads", type=THREAD, nargs=-1)
@click.option(
    "--since",
    callback=as_time,
    metavar="TIME",
    help="Only checkpoints saved since TIME, and the heads.",
)
@flag("--jsonl", help="Write one line of JSON for each checkpoint.")
@flag("--messages", help="With --jsonl: write messages instead of states.")
@flag("--heads", help="With --jsonl: write only the heads.")
@click.option(
    "--redact",
    multiple=True,
    metavar="PATH",
    help="With --jsonl: leave out this path, such as messages.*.content.",
)
def command(
    cli: Invocation,
    *,
    file: str,
    threads: tuple[str, ...],
    since: int | None,
    jsonl: bool,
    messages: bool,
    heads: bool,
    redact: tuple[str, ...],
) -> int:
    """Write everything, or only THREADS, to a new FILE.

    FILE - is standard output. The archive of the same content is the same to the last
    byte on every backend, and `import` reads it into any store. A thread is exported
    with all threads that share history with it; with `--since`, older checkpoints are
    left out, except heads. `--jsonl` is for people and other programs, and cannot be
    imported.
    """
    _check(cli, file, jsonl=jsonl, only=messages or heads or bool(redact))
    wanted = threads or None
    moment = None if since is None else EPOCH + timedelta(microseconds=since)
    with cli.reading() as store:
        if not jsonl:
            contents = _archive(cli, store, file, wanted, moment)
            _tell_archive(cli, file, contents)
            return _status.OK
        with cli.progress("Exporting") as progress:
            count = store.export_lines(
                _target(file),
                threads=wanted,
                since=moment,
                shown="messages" if messages else "state",
                heads=heads,
                redact=redact,
                progress=progress,
            )
    _tell(cli, file, {"format": "jsonl", "lines": count}, counted(count, "line"))
    return _status.OK


def _check(cli: Invocation, file: str, *, jsonl: bool, only: bool) -> None:
    if only and not jsonl:
        raise click.UsageError("--messages, --heads and --redact need --jsonl")
    if file == STREAM and cli.out.is_json:
        raise click.UsageError(
            "--json and an export to - both write to standard output; leave one out"
        )


def _target(file: str) -> str | BinaryIO:
    return sys.stdout.buffer if file == STREAM else file


def _archive(
    cli: Invocation,
    store: Store,
    file: str,
    threads: Sequence[str] | None,
    since: datetime | None,
) -> Contents:
    with cli.progress("Exporting") as progress:
        return store.export_to(
            _target(file), threads=threads, since=since, progress=progress
        )


def _tell_archive(cli: Invocation, file: str, contents: Contents) -> None:
    document: dict[str, object] = {"format": "archive"}
    document |= msgspec.to_builtins(contents)
    threads = counted(len(contents.threads), "thread")
    checkpoints = counted(contents.checkpoints, "checkpoint")
    _tell(cli, file, document, f"{checkpoints} in {threads}")


def _tell(cli: Invocation, file: str, document: dict[str, object], said: str) -> None:
    if file == STREAM:
        sys.stdout.buffer.flush()
        cli.out.note(said)
        return
    shown = (file, "name"), (f"  {said}", "faint")
    cli.out.done("export/1", {"file": file, **document}, *shown)
