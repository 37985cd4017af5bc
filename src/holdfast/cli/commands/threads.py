"""`holdfast threads`: the threads of the store."""

from __future__ import annotations

from typing import Any

from holdfast._values.records import ThreadRecord
from holdfast.cli import _command
from holdfast.cli._invocation import Invocation
from holdfast.cli._options import limit_option, option
from holdfast.cli._text import size, time
from holdfast.cli.terminal.tables import Line
from holdfast.views.documents import thread_document


@_command.command("threads", stream=True)
@option("--kind", "KIND", "Only threads of this kind.")
@option("--owner", "NAME", "Only threads of this owner.")
@option("--agent", "NAME", "Only threads of this agent.")
@option("--prefix", "TEXT", "Only threads whose name starts with TEXT.")
@limit_option(50)
def command(cli: Invocation, **wanted: Any) -> None:
    """List threads, the last used first."""
    with cli.reading() as store:
        found = store.threads(**wanted)
    lines = cli.out.table(map(_row, found), right=frozenset({1}))
    cli.out.listing(("thread", "threads"), map(thread_document, found), lines)


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
