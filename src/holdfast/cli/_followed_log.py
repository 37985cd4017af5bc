"""`holdfast log --follow`: what a thread saves, as it saves it."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from msgspec.structs import replace

from holdfast._api.store import Store
from holdfast._values.records import Checkpoint
from holdfast.cli._invocation import Invocation
from holdfast.cli._log_text import LogText, Shown
from holdfast.errors import NotFound
from holdfast.views.history import HistoryListing
from holdfast.views.lineage import LineageEntry

# How long one look at the feed waits. Ctrl-C ends it at once.
WAIT_SECONDS = 5.0
SAVED = "save"


def followed(
    cli: Invocation, store: Store, listing: HistoryListing, shown: Shown
) -> None:
    """Print a listing oldest first, then what its thread saves, until Ctrl-C."""
    oldest_first = replace(listing, entries=listing.entries[::-1])
    text = LogText(cli.out, store, oldest_first, shown)
    _print(cli, text)
    last = max((entry.checkpoint.seq for entry in listing.entries), default=0)
    for checkpoint in _saved(store, listing.thread, last):
        names = (listing.thread,)
        entry = LineageEntry(checkpoint, (), names)
        text = text.continued(replace(listing, entries=[entry]))
        _print(cli, text)


def _saved(store: Store, thread: str, after: int) -> Iterator[Checkpoint]:
    """The checkpoints that a thread saves after a number of the feed; never ends."""
    while True:
        page = store.changes(after, timeout=WAIT_SECONDS)
        after = after if page.cursor is None else page.cursor
        for change in page:
            if change.thread == thread and change.kind == SAVED and change.subject:
                try:
                    yield store.get(change.subject)
                except NotFound:
                    continue  # it was removed meanwhile


def _print(cli: Invocation, text: LogText) -> None:
    if cli.options.ndjson:
        for document in text.documents():
            cli.out.item("checkpoint/1", document)
        return
    cli.out.lines(text.lines(), paged=False)
    sys.stdout.flush()
