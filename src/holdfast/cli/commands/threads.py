"""`holdfast threads`: the threads of the store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdfast._api.store import Store
from holdfast._values.records import Page, ThreadRecord
from holdfast.cli import _command
from holdfast.cli._invocation import Invocation
from holdfast.cli._options import count_option, open_limit_option, option
from holdfast.cli._thread_rows import (
    MESSAGES,
    ListedThread,
    listed_threads,
    page_of_threads,
    thread_row,
)
from holdfast.cli.terminal.tables import Line

# How many are listed where no pager shows them, and how many are read at once for one.
SCREENFUL, CHUNK = 50, 100


@_command.command("threads", stream=True)
@option("--kind", "KIND", "Only threads of this kind.")
@option("--owner", "NAME", "Only threads of this owner.")
@option("--agent", "NAME", "Only threads of this agent.")
@option("--prefix", "TEXT", "Only threads whose name starts with TEXT.")
@count_option("--after", "Go on after this CURSOR of a page.", metavar="CURSOR")
@open_limit_option(SCREENFUL)
def command(cli: Invocation, *, limit: int | None, **wanted: Any) -> None:
    """List threads, the last used first.

    Each with its step, its messages, title, last message and owner. A thread that waits
    is marked: for a decision about a tool call that began and did not end or about a
    paused run, or for messages that no checkpoint has yet.
    """
    with cli.reading() as store:
        is_endless = limit is None and cli.out.is_paged
        size = limit or (CHUNK if is_endless else SCREENFUL)
        found = page_of_threads(store, size, **wanted)
        listed = listed_threads(cli, store, found)
        rest = _pages(store, found, wanted) if is_endless else iter(())
        cli.out.listing(
            ("thread", "threads"),
            (thread.document() for thread in listed),
            _lines(cli, store, listed, rest),
            more=found.cursor is not None,
            cursor=found.cursor,
        )
        if found.cursor is not None and not is_endless:
            cli.out.note(f"there is more; go on with --after {found.cursor}")


def _pages(
    store: Store, page: Page[ThreadRecord], wanted: dict[str, Any]
) -> Iterator[Page[ThreadRecord]]:
    """The pages after a page, read as the pager asks for them."""
    while page.cursor is not None:
        wanted = {**wanted, "after": page.cursor}
        page = page_of_threads(store, CHUNK, **wanted)
        yield page


def _lines(
    cli: Invocation,
    store: Store,
    listed: list[ListedThread],
    rest: Iterator[Page[ThreadRecord]],
) -> Iterator[Line]:
    widths: dict[int, int] = {}
    while True:
        rows = (thread_row(cli.out, thread, _origin(thread)) for thread in listed)
        yield from cli.out.table(rows, frozenset({MESSAGES}), widths)
        page = next(rest, None)
        if page is None:
            return
        listed = listed_threads(cli, store, page)


def _origin(thread: ListedThread) -> str:
    origin = thread.record.forked_from
    return f"forked from {origin.thread}" if origin else ""
