"""`holdfast` without a command: the threads that were used last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from holdfast._api.store import Store
from holdfast._values.records import Page, ThreadRecord
from holdfast.cli._invocation import Invocation
from holdfast.cli._lines import marks, policy_mark
from holdfast.cli._store_address import without_password
from holdfast.cli._text import time
from holdfast.cli._waiting import waiting_mark
from holdfast.cli.terminal.tables import Cell, Line, Span, spaced
from holdfast.errors import NotFound
from holdfast.views.references import shown_reference
from holdfast.views.waiting import (
    all_waiting,
    listed_thread,
    threads_without_checkpoint,
)

MOST = 20


def overview(cli: Invocation) -> None:
    """Print the threads that were used last, with their heads, forks and marks."""
    with cli.reading() as store:
        threads = store.threads(limit=MOST)
        listed = [*_begun(store), *threads]
        waiting = all_waiting(store, listed)
        document = {
            "store": without_password(cli.address),
            "threads": list(map(listed_thread, listed, waiting)),
        }
        waits = {
            thread.id: waiting_mark(found)
            for thread, found in zip(listed, waiting, strict=True)
        }
        lines = _lines(cli, store, Page(tuple(listed), threads.cursor), waits)
        cli.out.answer("overview/1", document, lines)


def _begun(store: Store) -> list[ThreadRecord]:
    """Threads that wait for something before their first checkpoint."""
    found = threads_without_checkpoint(store, MOST)
    waiting = all_waiting(store, found)
    return [record for record, waits in zip(found, waiting, strict=True) if waits]


def _lines(
    cli: Invocation,
    store: Store,
    threads: Page[ThreadRecord],
    waiting: Mapping[str, Span],
) -> Iterator[Line]:
    out = cli.out
    yield (("store ", "faint"), (without_password(cli.address), "name"))
    if not threads:
        yield (("it has no threads yet", ""),)
        return
    yield ()
    rows = [
        row
        for family in _families(threads)
        for row in _rows(cli, store, family, waiting)
    ]
    yield from out.table(rows)
    if threads.cursor is not None:
        yield ()
        yield ((f"and more: holdfast threads -n {2 * MOST}", "faint"),)


def _families(threads: Sequence[ThreadRecord]) -> list[list[ThreadRecord]]:
    """Threads by family; in each, threads that are not forks come first."""
    families: dict[int, list[ThreadRecord]] = {}
    for thread in threads:
        families.setdefault(thread.family, []).append(thread)
    return [
        sorted(family, key=lambda thread: thread.forked_from is not None)
        for family in families.values()
    ]


def _rows(
    cli: Invocation,
    store: Store,
    family: Sequence[ThreadRecord],
    waiting: Mapping[str, Span],
) -> Iterator[Sequence[Cell]]:
    glyphs = cli.out.glyphs
    for index, thread in enumerate(family):
        head = thread.head
        last = index == len(family) - 1
        sign = f"{glyphs.end if last else glyphs.branch}{glyphs.across} "
        yield [
            ((sign if index else "", "faint"), (thread.id, "name")),
            (f"@{head.step}" if head else "", "reference"),
            (time(head.saved_at if head else thread.updated_at), "faint"),
            (head.kind if head else "not saved", ""),
            spaced(
                [
                    *(marks(head) if head else ()),
                    waiting[thread.id],
                    (_origin(store, thread), "faint"),
                    policy_mark(thread),
                ]
            ),
        ]


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
