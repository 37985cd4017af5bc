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
from holdfast.cli import _command, _exits
from holdfast.cli._counted import counted
from holdfast.cli._names import THREAD
from holdfast.cli._options import as_time
from holdfast.cli._session import Session

STREAM = "-"


@_command.command("export")
@click.argument("file", type=click.Path(allow_dash=True))
@click.argument("threads", type=THREAD, nargs=-1)
@click.option(
    "--since", callback=as_time, metavar="TIME", help="Only what was saved since."
)
@click.option("--jsonl", is_flag=True, help="A line of JSON for each checkpoint.")
@click.option("--messages", is_flag=True, help="With --jsonl: not states, messages.")
@click.option("--heads", is_flag=True, help="With --jsonl: only the heads.")
@click.option(
    "--redact",
    multiple=True,
    metavar="PATH",
    help="With --jsonl: leave out what stands there, such as messages.*.content.",
)
def command(
    session: Session,
    *,
    file: str,
    threads: tuple[str, ...],
    since: int | None,
    jsonl: bool,
    messages: bool,
    heads: bool,
    redact: tuple[str, ...],
) -> int:
    """Write everything, or some THREADS, to a new FILE; - is standard output.

    The archive is the same to the last byte for the same content, whatever keeps it,
    and `import` takes it into any store. Threads go with all that share history with
    them; with `--since`, older checkpoints are left out but for the heads. `--jsonl` is
    for people and other programs, and cannot be imported.
    """
    _check(session, file, jsonl=jsonl, only=messages or heads or bool(redact))
    wanted = threads or None
    moment = None if since is None else EPOCH + timedelta(microseconds=since)
    with session.reading() as store:
        if not jsonl:
            contents = _archive(session, store, file, wanted, moment)
            _tell_archive(session, file, contents)
            return _exits.OK
        with session.progress("Exporting") as progress:
            count = store.export_lines(
                _target(file),
                threads=wanted,
                since=moment,
                shown="messages" if messages else "state",
                heads=heads,
                redact=redact,
                progress=progress,
            )
    _tell(session, file, {"format": "jsonl", "lines": count}, counted(count, "line"))
    return _exits.OK


def _check(session: Session, file: str, *, jsonl: bool, only: bool) -> None:
    if only and not jsonl:
        raise click.UsageError("--messages, --heads and --redact go with --jsonl")
    if file == STREAM and session.out.is_json:
        raise click.UsageError("--json and an export to - would both be printed")


def _target(file: str) -> str | BinaryIO:
    return sys.stdout.buffer if file == STREAM else file


def _archive(
    session: Session,
    store: Store,
    file: str,
    threads: Sequence[str] | None,
    since: datetime | None,
) -> Contents:
    with session.progress("Exporting") as progress:
        return store.export_to(
            _target(file), threads=threads, since=since, progress=progress
        )


def _tell_archive(session: Session, file: str, contents: Contents) -> None:
    document: dict[str, object] = {"format": "archive"}
    document |= msgspec.to_builtins(contents)
    threads = counted(len(contents.threads), "thread")
    checkpoints = counted(contents.checkpoints, "checkpoint")
    _tell(session, file, document, f"{checkpoints} in {threads}")


def _tell(session: Session, file: str, document: dict[str, object], said: str) -> None:
    if file == STREAM:
        sys.stdout.buffer.flush()
        session.out.note(said)
        return
    shown = (file, "name"), (f"  {said}", "faint")
    session.out.done("export/1", {"file": file, **document}, *shown)
