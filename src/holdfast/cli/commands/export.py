"""`holdfast export`: a portable archive, JSON Lines, or a page for a browser."""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import Any, BinaryIO

import click
import msgspec

from holdfast._api.store import Store
from holdfast._values.records import EPOCH
from holdfast.archive import Contents
from holdfast.archive._target import new_file
from holdfast.cli import _command, _status
from holdfast.cli._completion import THREAD
from holdfast.cli._invocation import Invocation
from holdfast.cli._options import flag, option, redactor, since_option
from holdfast.cli._text import counted
from holdfast.cli._thread_names import full_name

STREAM = "-"


@_command.command("export")
@click.argument("file", type=click.Path(allow_dash=True))
@click.argument("threads", type=THREAD, nargs=-1)
@option("--owner", "NAME", "Only threads of this owner, and THREADS.")
@since_option("Only checkpoints saved since TIME.")
@flag("--jsonl", help="Write one line of JSON for each checkpoint.")
@flag("--html", help="Write THREADS as one page that any browser opens.")
@flag("--messages", help="With --jsonl: write messages instead of states.")
@flag("--heads", help="With --jsonl: write only the heads.")
@option(
    "--redact",
    "WHAT",
    "With --jsonl: leave out this path, such as messages.*.content. With --html: hide"
    " what matches this regular expression.",
    multiple=True,
)
def command(
    cli: Invocation,
    *,
    file: str,
    threads: tuple[str, ...],
    owner: str | None,
    since: int | None,
    jsonl: bool,
    html: bool,
    redact: tuple[str, ...],
    **lines: bool,
) -> int:
    """Write everything, or only some threads, to a new file.

    Only THREADS, if there are any. FILE - is standard output. The archive of the same
    content is the same to the last byte on every backend, and `import` reads it into
    any store. A thread is exported with all threads that share history with it; with
    `--since`, older checkpoints are left out, except heads. `--jsonl` is for other
    programs and cannot be imported; with `--owner` it has everything that is held about
    a person, the journal too. `--html` is for people: the viewer with what it shows, in
    one file.
    """
    is_of_lines = any(lines.values()) or (bool(redact) and not html)
    _check(cli, file, jsonl=jsonl, only=is_of_lines)
    if html:
        return _html(cli, file, threads, redact, others=jsonl or bool(owner or since))
    common: dict[str, Any] = {
        "owner": owner,
        "since": None if since is None else EPOCH + timedelta(microseconds=since),
    }
    with cli.reading() as store, cli.progress("Exporting") as progress:
        common["threads"] = [full_name(store, name) for name in threads] or None
        common["progress"] = progress
        if jsonl:
            document, text = _lines(store, file, redact, common, **lines)
        else:
            document, text = _archive(store.export_to(_target(file), **common))
    _print(cli, file, document, text)
    return _status.OK


def _lines(
    store: Store,
    file: str,
    redact: tuple[str, ...],
    common: dict[str, Any],
    *,
    messages: bool,
    heads: bool,
) -> tuple[dict[str, Any], str]:
    count = store.export_lines(
        _target(file),
        **common,
        shown="messages" if messages else "state",
        heads=heads,
        redact=redact,
    )
    return {"format": "jsonl", "lines": count}, counted(count, "line")


def _target(file: str) -> BinaryIO | str:
    return sys.stdout.buffer if file == STREAM else file


def _html(
    cli: Invocation,
    file: str,
    threads: tuple[str, ...],
    redact: tuple[str, ...],
    *,
    others: bool,
) -> int:
    if others or not threads:
        raise click.UsageError("--html takes THREADS, and no other choice of content")
    from holdfast.viewer import export_html  # noqa: PLC0415 - an extra

    with cli.reading() as store:
        threads = tuple(full_name(store, name) for name in threads)
        page = store.runner.run(export_html, threads, redactor(redact)).encode()
    with new_file(_target(file)) as opened:
        opened.write(page)
    document = {"format": "html", "threads": list(threads), "bytes": len(page)}
    _print(cli, file, document, f"{counted(len(threads), 'thread')} as a page")
    return _status.OK


def _check(cli: Invocation, file: str, *, jsonl: bool, only: bool) -> None:
    if only and not jsonl:
        raise click.UsageError("--messages, --heads and --redact need --jsonl")
    if file == STREAM and cli.out.is_json:
        raise click.UsageError(
            "--json and an export to - both write to standard output; leave one out"
        )


def _archive(contents: Contents) -> tuple[dict[str, Any], str]:
    threads = counted(len(contents.threads), "thread")
    checkpoints = counted(contents.checkpoints, "checkpoint")
    document = {"format": "archive", **msgspec.to_builtins(contents)}
    return document, f"{checkpoints} in {threads}"


def _print(cli: Invocation, file: str, document: dict[str, Any], text: str) -> None:
    if file == STREAM:
        sys.stdout.buffer.flush()
        cli.out.note(text)
        return
    shown = (file, "name"), (f"  {text}", "faint")
    cli.out.done("export/1", {"file": file, **document}, *shown)
