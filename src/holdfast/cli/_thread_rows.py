"""Threads as rows: where each is, what was said last, and what it waits for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from holdfast._api.store import Store
from holdfast._values.records import Page, ThreadRecord
from holdfast.cli._invocation import Invocation
from holdfast.cli._lines import marks, message_spans, policy_mark
from holdfast.cli._text import counted
from holdfast.cli._waiting import waiting_mark
from holdfast.cli.terminal.output import Output
from holdfast.cli.terminal.tables import Cell, Span, spaced
from holdfast.views.summaries import ThreadSummary, thread_summaries
from holdfast.views.waiting import ThreadWaits, all_waiting, listed_thread

PLAIN_KIND = "thread"
# The column of a row with the number of messages.
MESSAGES = 3


class ListedThread(msgspec.Struct, frozen=True):
    """A thread in a listing, and what was read for it."""

    record: ThreadRecord
    waiting: ThreadWaits
    summary: ThreadSummary

    def document(self) -> dict[str, object]:
        """The thread with what its row shows."""
        summary: dict[str, object] = msgspec.to_builtins(self.summary)
        return {**listed_thread(self.record, self.waiting), **summary}


def page_of_threads(store: Store, size: int, **wanted: Any) -> Page[ThreadRecord]:
    """A page of threads, which has a cursor only if there are more."""
    found = store.threads(**wanted, limit=size + 1)
    shown = tuple(found)[:size]
    return Page(shown, shown[-1].changed if len(found) > size else None)


def listed_threads(
    cli: Invocation, store: Store, records: Sequence[ThreadRecord]
) -> list[ListedThread]:
    """Threads with what their rows show, read together."""
    waiting = all_waiting(store, records)
    summaries = thread_summaries(store, records, cli.out.width)
    return list(map(ListedThread, records, waiting, summaries))


def thread_row(
    out: Output, thread: ListedThread, origin: str, sign: str = ""
) -> list[Cell]:
    """A row; ``sign`` stands before the name, ``origin`` says where a fork began."""
    record, summary = thread.record, thread.summary
    head = record.head
    count = summary.messages
    return [
        ((sign, "faint"), (record.id, "name")),
        (f"@{head.step}" if head else "not saved", "reference"),
        (out.time(head.saved_at if head else record.updated_at), "faint"),
        ("" if count is None else counted(count, "message"), ""),
        spaced(
            [
                *_about(out, thread),
                (f"({origin})" if origin else "", "faint"),
                policy_mark(record),
                (f"owner={record.owner}" if record.owner else "", "faint"),
            ]
        ),
    ]


def _about(out: Output, thread: ListedThread) -> Iterator[Span]:
    record, summary = thread.record, thread.summary
    yield (f'"{summary.title}"' if summary.title else "", "title")
    yield waiting_mark(thread.waiting)
    yield from marks(record.head) if record.head else ()
    yield (_kind(record), "label")
    if summary.last is not None:
        yield from message_spans(out, summary.last)


def _kind(record: ThreadRecord) -> str:
    """The kind of a thread, unless its name says it."""
    is_told = record.kind == PLAIN_KIND or record.id.startswith(f"{record.kind}:")
    return "" if is_told else record.kind
