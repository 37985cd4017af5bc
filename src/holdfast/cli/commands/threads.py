"""`holdfast threads`: the threads of the store."""

from __future__ import annotations

from itertools import starmap
from typing import Any

from holdfast._values.records import ThreadRecord
from holdfast.cli import _command
from holdfast.cli._invocation import Invocation
from holdfast.cli._lines import policy_mark
from holdfast.cli._options import limit_option, option
from holdfast.cli._text import size, time
from holdfast.cli._waiting import waiting_mark
from holdfast.cli.terminal.tables import Cell, spaced
from holdfast.views.waiting import ThreadWaits, all_waiting, listed_thread


@_command.command("threads", stream=True)
@option("--kind", "KIND", "Only threads of this kind.")
@option("--owner", "NAME", "Only threads of this owner.")
@option("--agent", "NAME", "Only threads of this agent.")
@option("--prefix", "TEXT", "Only threads whose name starts with TEXT.")
@limit_option(50)
def command(cli: Invocation, **wanted: Any) -> None:
    """List threads, the last used first.

    A thread that waits is marked: for a decision about a tool call that began and did
    not end or about a paused run, or for messages that no checkpoint has yet.
    """
    with cli.reading() as store:
        found = store.threads(**wanted)
        both = list(zip(found, all_waiting(store, found), strict=True))
    lines = cli.out.table(starmap(_row, both), right=frozenset({1}))
    cli.out.listing(("thread", "threads"), starmap(listed_thread, both), lines)


def _row(thread: ThreadRecord, waiting: ThreadWaits) -> list[Cell]:
    head = thread.head
    assert head is not None  # a thread is listed only once it was saved to
    origin = thread.forked_from
    about = f"forked from {origin.thread}" if origin else ""
    return [
        (thread.id, "name"),
        (f"@{head.step}", "reference"),
        (time(head.saved_at), "faint"),
        (thread.kind, ""),
        (size(head.size), ""),
        spaced([waiting_mark(waiting), (about, "faint"), policy_mark(thread)]),
    ]
