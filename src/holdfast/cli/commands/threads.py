"""`holdfast threads`: which threads there are."""

from __future__ import annotations

from collections.abc import Iterator

import click

from holdfast._values.records import Page, ThreadRecord
from holdfast.cli import _command, _documents
from holdfast.cli._options import limit_option
from holdfast.cli._session import Session
from holdfast.cli.terminal.output import Line, Output


@_command.command("threads", stream=True)
@click.option("--kind", help="Only threads of this kind.", metavar="KIND")
@click.option("--owner", help="Only threads of this owner.", metavar="NAME")
@click.option("--agent", help="Only those that work for this agent.", metavar="NAME")
@click.option("--prefix", help="Only those whose name begins so.", metavar="TEXT")
@limit_option(50)
def command(
    session: Session,
    *,
    kind: str | None,
    owner: str | None,
    agent: str | None,
    prefix: str | None,
    limit: int,
) -> None:
    """List threads, last used first."""
    with session.reading() as store:
        found = store.threads(
            kind=kind, owner=owner, agent=agent, prefix=prefix, limit=limit
        )
    session.out.listing(
        ("thread", "threads"),
        map(_documents.thread_document, found),
        lines(session.out, found),
    )


def lines(out: Output, found: Page[ThreadRecord]) -> Iterator[Line]:
    """A line for each thread."""
    return out.table(map(_row, found), right=frozenset({1}))


def _row(thread: ThreadRecord) -> Line:
    head = thread.head
    assert head is not None  # only threads that were saved to are listed
    origin = thread.forked_from
    about = f"forked from {origin.thread}" if origin else ""
    return (
        (thread.id, "name"),
        (f"@{head.step}", "reference"),
        (_documents.time(head.saved_at), "faint"),
        (thread.kind, ""),
        (_documents.size(head.size), ""),
        (about, "faint"),
    )
