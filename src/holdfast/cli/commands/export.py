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
from holdfast.cli import _command, _exit_status
from holdfast.cli._completion import THREAD
from holdfast.cli._invocation import Invocation
from holdfast.cli._options import as_time
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
@click.option(
    "--jsonl", is_flag=True, help="Write one line of JSON for each checkpoint."
)
@click.option(
    "--messages", is_flag=True, help="With --jsonl: write messages instead of states."
)
@click.option("--heads", is_flag=True, help="With --jsonl: write only the heads.")
@click.option(
    "--redact",
    multiple=True,
    metavar="PATH",
    help="With --jsonl: leave out this path, such as messages.*.content.",
)
def command(
    invocation: Invocation,
    *,
    file: str,
    threads: tuple[str, ...],
    since: int | None,
    jsonl: bool,
    messages: bool,
    heads: bool,
    redact: tuple[str, ...],
) -> int:
    """Write everything, or only THREADS, to a new FILE; - is standard output.

    The archive of the same content is the same to the last byte on every backend, and
    `import` reads it into any store. A thread is exported with all threads that share
    history with it; with `--since`, older checkpoints are left out, except heads.
    `--jsonl` is for people and other programs, and cannot be imported.
    """
    _check(invocation, file, jsonl=jsonl, only=messages or heads or bool(redact))
    wanted = threads or None
    moment = None if since is None else EPOCH + timedelta(microseconds=since)
    with invocation.reading() as store:
        if not jsonl:
            contents = _archive(invocation, store, file, wanted, moment)
            _tell_archive(invocation, file, contents)
            return _exit_status.OK
        with invocation.progress("Exporting") as progress:
            count = store.export_lines(
                _target(file),
                threads=wanted,
                since=moment,
                shown="messages" if messages else "state",
                heads=heads,
                redact=redact,
                progress=progress,
            )
    _tell(invocation, file, {"format": "jsonl", "lines": count}, counted(count, "line"))
    return _exit_status.OK


def _check(invocation: Invocation, file: str, *, jsonl: bool, only: bool) -> None:
    if only and not jsonl:
        raise click.UsageError("--messages, --heads and --redact need --jsonl")
    if file == STREAM and invocation.out.is_json:
        raise click.UsageError(
            "--json and an export to - both write to standard output; leave one out"
        )


def _target(file: str) -> str | BinaryIO:
    return sys.stdout.buffer if file == STREAM else file


def _archive(
    invocation: Invocation,
    store: Store,
    file: str,
    threads: Sequence[str] | None,
    since: datetime | None,
) -> Contents:
    with invocation.progress("Exporting") as progress:
        return store.export_to(
            _target(file), threads=threads, since=since, progress=progress
        )


def _tell_archive(invocation: Invocation, file: str, contents: Contents) -> None:
    document: dict[str, object] = {"format": "archive"}
    document |= msgspec.to_builtins(contents)
    threads = counted(len(contents.threads), "thread")
    checkpoints = counted(contents.checkpoints, "checkpoint")
    _tell(invocation, file, document, f"{checkpoints} in {threads}")


def _tell(
    invocation: Invocation, file: str, document: dict[str, object], said: str
) -> None:
    if file == STREAM:
        sys.stdout.buffer.flush()
        invocation.out.note(said)
        return
    shown = (file, "name"), (f"  {said}", "faint")
    invocation.out.done("export/1", {"file": file, **document}, *shown)
