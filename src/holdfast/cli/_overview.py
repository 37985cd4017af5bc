"""`holdfast` without a command: the threads that were used last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast._api.address import shown_address
from holdfast._api.store import Store
from holdfast._values.records import ThreadRecord
from holdfast.cli._invocation import Invocation
from holdfast.cli._thread_rows import (
    MESSAGES,
    ListedThread,
    listed_threads,
    page_of_threads,
    thread_row,
)
from holdfast.cli.terminal.tables import Cell, Line
from holdfast.errors import NotFound
from holdfast.views.references import shown_reference
from holdfast.views.waiting import all_waiting, threads_without_checkpoint

MOST = 20


def overview(cli: Invocation) -> None:
    """Print the threads that were used last, with their heads, forks and marks."""
    with cli.reading() as store:
        threads = page_of_threads(store, MOST)
        listed = listed_threads(cli, store, [*_begun(store), *threads])
        document = {
            "store": shown_address(cli.address),
            "threads": [thread.document() for thread in listed],
            "more": threads.cursor is not None,
            "cursor": threads.cursor,
        }
        cli.out.answer("overview/1", document, _lines(cli, store, listed))
        if threads.cursor is not None:
            cli.out.note(f"there is more: holdfast threads --after {threads.cursor}")


def _begun(store: Store) -> list[ThreadRecord]:
    """Threads that wait for something before their first checkpoint."""
    found = threads_without_checkpoint(store, MOST)
    waiting = all_waiting(store, found)
    return [record for record, waits in zip(found, waiting, strict=True) if waits]


def _lines(
    cli: Invocation, store: Store, listed: Sequence[ListedThread]
) -> Iterator[Line]:
    yield (("store ", "faint"), (shown_address(cli.address), "name"))
    if not listed:
        yield (("it has no threads yet", ""),)
        return
    yield ()
    rows = [row for family in _families(listed) for row in _rows(cli, store, family)]
    yield from cli.out.table(rows, frozenset({MESSAGES}))


def _families(listed: Sequence[ListedThread]) -> list[list[ListedThread]]:
    """Threads by family; in each, threads that are not forks come first."""
    families: dict[int, list[ListedThread]] = {}
    for thread in listed:
        families.setdefault(thread.record.family, []).append(thread)
    return [
        sorted(family, key=lambda thread: thread.record.forked_from is not None)
        for family in families.values()
    ]


def _rows(
    cli: Invocation, store: Store, family: Sequence[ListedThread]
) -> Iterator[Sequence[Cell]]:
    glyphs = cli.out.glyphs
    for index, thread in enumerate(family):
        last = index == len(family) - 1
        sign = f"{glyphs.end if last else glyphs.branch}{glyphs.across} "
        origin = _origin(store, thread.record)
        yield thread_row(cli.out, thread, origin, sign if index else "")


def _origin(store: Store, thread: ThreadRecord) -> str:
    origin = thread.forked_from
    if origin is None:
        return ""
    try:
        source = store.thread(origin.thread)
        begun = source.get(origin.checkpoint)
        return f"forked from {shown_reference(store, begun, source)}"
    except NotFound:
        return f"forked from {origin.thread}"
