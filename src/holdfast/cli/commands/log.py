"""`holdfast log`: the history of a thread."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from holdfast._api.store import Store
from holdfast.cli import _command
from holdfast.cli._completion import REFERENCE
from holdfast.cli._error_text import for_command_line
from holdfast.cli._invocation import Invocation
from holdfast.cli._lines import change_lines, marks
from holdfast.cli._options import flag, limit_option, option, since_option
from holdfast.cli._resolve import last_used, locate, locate_range
from holdfast.cli._text import pairs, time
from holdfast.cli.terminal.graph import drawn
from holdfast.cli.terminal.output import Output
from holdfast.cli.terminal.tables import Cell, Line, Span, spaced
from holdfast.diff import Diff
from holdfast.errors import HoldfastError
from holdfast.views import history
from holdfast.views.differences import change_documents, differences_of
from holdfast.views.documents import checkpoint_document, thread_document
from holdfast.views.history import HistoryFilter, HistoryListing
from holdfast.views.lanes import laid_out
from holdfast.views.lineage import LineageEntry
from holdfast.views.messages import summary
from holdfast.views.references import Revision, short_id


@_command.command("log", stream=True)
@click.argument("what", type=REFERENCE, required=False)
@flag(
    "--graph", help="Draw the thread, its forks and the rewound checkpoints as a tree."
)
@flag("--all", help="Include checkpoints that were rewound.")
@flag("--oneline", help="Print only references, labels and tags.")
@since_option("Stop at the first checkpoint that is older than TIME.")
@option("--tag", "TAG", "Only checkpoints with this tag.")
@option("--label", "LABEL", "Only checkpoints with this label.")
@flag("--changes", help="Show what each checkpoint changed.")
@limit_option(50)
def command(
    cli: Invocation,
    *,
    what: str | None,
    graph: bool,
    oneline: bool,
    changes: bool,
    **given: Any,
) -> None:
    """List the checkpoints of a thread, newest first.

    WHAT is a thread, a checkpoint to start at, or a range A..B: the checkpoints that
    lead to B and not to A. Without WHAT, the thread that was used last is listed. Each
    checkpoint is shown with its last message.
    """
    wanted = HistoryFilter(**given)
    if graph and changes:
        raise click.UsageError(
            "a graph has no room for --changes; leave one of them out"
        )
    with cli.reading() as store:
        listing = _find(cli, store, what, wanted, graph=graph)
        text = LogText(cli.out, store, listing, oneline=oneline)
        checkpoints = [entry.checkpoint for entry in listing.entries]
        differences = differences_of(store, checkpoints) if changes else None
        cli.out.listing(
            ("checkpoint", "checkpoints"),
            _documents(listing, differences),
            text.graph() if graph else text.lines(differences),
            schema="log/1",
            **_about(listing),
        )


def _find(
    cli: Invocation,
    store: Store,
    what: str | None,
    wanted: HistoryFilter,
    *,
    graph: bool,
) -> HistoryListing:
    ends = locate_range(store, what) if what else None
    _check(wanted, graph=graph, is_range=ends is not None)
    if ends is not None:
        return history.difference(*ends, wanted)
    start = locate(store, what) if what is not None else _last_used(cli, store)
    return history.tree(start, wanted) if graph else history.line(start, wanted)


def _check(wanted: HistoryFilter, *, graph: bool, is_range: bool) -> None:
    if graph and (wanted.leaves_gaps or is_range):
        raise click.UsageError("--graph draws the whole tree; leave the filters out")
    if is_range and wanted.all:
        raise click.UsageError("a range is one line; leave --all out")
    if is_range and wanted.leaves_gaps:
        raise click.UsageError(
            "a range lists every checkpoint; leave --tag and --label out"
        )


def _last_used(cli: Invocation, store: Store) -> Revision:
    start, is_one_of_many = last_used(store)
    if is_one_of_many:
        cli.out.note(f"thread {start.thread.id}, which was used last")
    return start


def _about(listing: HistoryListing) -> dict[str, object]:
    about: dict[str, object] = {"thread": listing.thread}
    if listing.family is not None:
        about["threads"] = list(map(thread_document, listing.family))
    return about


def _documents(
    listing: HistoryListing, differences: Iterator[Diff] | None
) -> Iterator[dict[str, object]]:
    for entry in listing.entries:
        document = checkpoint_document(entry.checkpoint)
        document["rewound"] = entry.is_rewound
        if differences is not None:
            document["changes"] = change_documents(next(differences))
        yield document


class LogText:
    """A log for people."""

    def __init__(
        self, out: Output, store: Store, listing: HistoryListing, *, oneline: bool
    ) -> None:
        self.out, self.store = out, store
        self.listing, self.oneline = listing, oneline

    def lines(self, differences: Iterator[Diff] | None) -> Iterator[Line]:
        """A line for each checkpoint, with its changes below it."""
        summaries = self._summaries()
        rows = (self._row(entry, summaries) for entry in self.listing.entries)
        for line in self.out.table(rows):
            yield line
            if differences is not None:
                changed = change_lines(next(differences), "    ")
                yield from map(self.out.fitted, changed)

    def graph(self) -> Iterator[Line]:
        """The same lines beside the tree of the checkpoints."""
        glyphs, summaries = self.out.glyphs, self._summaries()
        rows: list[Sequence[Cell]] = []
        for row in laid_out(self.listing.entries):
            entry = row.node
            sign = glyphs.rewound if entry and entry.is_rewound else glyphs.node
            lanes: Span = (drawn(row, glyphs, sign), "")
            rows.append([lanes, *(self._row(entry, summaries) if entry else ())])
        return self.out.table(rows)

    def _summaries(self) -> dict[str, str]:
        """The last message of each checkpoint, if its parent has another one."""
        if self.oneline:
            return {}
        checkpoints = [entry.checkpoint for entry in self.listing.entries]
        try:
            messages = self.store.last_messages(checkpoints)
        except HoldfastError as error:
            # The log of a damaged store is still useful without its messages.
            self.out.note(f"messages are left out: {for_command_line(str(error))}")
            return {}
        last = {c.id: m for c, m in zip(checkpoints, messages, strict=True)}
        return {
            checkpoint.id: summary(message)
            for checkpoint, message in zip(checkpoints, messages, strict=True)
            if message is not None and message != last.get(checkpoint.parent or "")
        }

    def _row(self, entry: LineageEntry, summaries: Mapping[str, str]) -> list[Cell]:
        checkpoint = entry.checkpoint
        faint = "faint" if entry.is_rewound else ""
        name = short_id(self.store, checkpoint.id) if faint else self._name(entry)
        reference: Span = (name, faint or "reference")
        heads = [(f"({name})", "head") for name in entry.heads]
        marked = [*heads, *marks(checkpoint)]
        if self.oneline:
            return [reference, spaced(marked)]
        message: Span = (summaries.get(checkpoint.id, ""), faint)
        metadata: Span = (pairs(checkpoint.metadata), "faint")
        return [
            reference,
            (time(checkpoint.saved_at), "faint"),
            (checkpoint.kind, faint),
            spaced([*marked, message, metadata]),
        ]

    def _name(self, entry: LineageEntry) -> str:
        names = entry.threads
        preferred = (self.listing.thread, entry.checkpoint.thread, names[0])
        thread = next(name for name in preferred if name in names)
        return f"{thread}@{entry.checkpoint.step}"
