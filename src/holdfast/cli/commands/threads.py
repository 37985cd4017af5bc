"""`holdfast threads`: the threads of the store."""

from __future__ import annotations

from collections.abc import Iterator

import click

from holdfast._values.records import Page, ThreadRecord
from holdfast.cli import _command
from holdfast.cli._invocation import Invocation
from holdfast.cli._options import limit_option
from holdfast.cli._text import size, time
from holdfast.cli.terminal.output import Output
from holdfast.cli.terminal.tables import Line
from holdfast.views.documents import thread_document


@_command.command("threads", stream=True)
@click.option("--kind", help="Only threads of this kind.", metavar="KIND")
@click.option("--owner", help="Only threads of this owner.", metavar="NAME")
@click.option("--agent", help="Only threads of this agent.", metavar="NAME")
@click.option(
    "--prefix", help="Only threads whose name starts with TEXT.", metavar="TEXT"
)
@limit_option(50)
def command(
    cli: Invocation,
    *,
    kind: str | None,
    owner: str | None,
    agent: str | None,
    prefix: str | None,
    limit: int,
) -> None:
    """List threads, the last used first."""
    with cli.reading() as store:
        found = store.threads(
            kind=kind, owner=owner, agent=agent, prefix=prefix, limit=limit
        )
    cli.out.listing(
        ("thread", "threads"), map(thread_document, found), lines(cli.out, found)
    )


def lines(out: Output, found: Page[ThreadRecord]) -> Iterator[Line]:
    """A line for each thread."""
    return out.table(map(_row, found), right=frozenset({1}))


def _row(thread: ThreadRecord) -> Line:
    head = thread.head
    assert head is not None  # a thread is listed only once it was saved to
    origin = thread.forked_from
    about = f"forked from {origin.thread}" if origin else ""
    return (
        (thread.id, "name"),
        (f"@{head.step}", "reference"),
        (time(head.saved_at), "faint"),
        (thread.kind, ""),
        (size(head.size), ""),
        (about, "faint"),
    )
