"""A log as lines for people, and the same facts as documents for programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import msgspec

from holdfast._api.store import Store
from holdfast._values.records import Checkpoint
from holdfast.cli._lines import change_lines, marks, message_spans
from holdfast.cli._text import for_command_line, pairs, time
from holdfast.cli.terminal.output import Glyphs, Output
from holdfast.cli.terminal.tables import Cell, Line, Span, spaced
from holdfast.diff import WIDTH, Diff
from holdfast.errors import HoldfastError
from holdfast.views import differences as difference_views
from holdfast.views import files
from holdfast.views import lanes as lane_views
from holdfast.views import rows as row_views
from holdfast.views.documents import checkpoint_document
from holdfast.views.history import HistoryListing
from holdfast.views.lanes import LaneRow, N
from holdfast.views.langgraph_steps import own_metadata, step_text
from holdfast.views.lineage import LineageEntry
from holdfast.views.references import short_id
from holdfast.views.summaries import MessageSummary, new_messages

# The kind of a checkpoint that says nothing about it.
PLAIN_KIND = "save"


class Shown(msgspec.Struct, frozen=True):
    """The shown parts of each checkpoint; ``verbose`` includes bookkeeping.

    With ``clock_times``, times are those of a clock on a terminal, too.
    """

    oneline: bool = False
    verbose: bool = False
    changes: bool = False
    clock_times: bool = False


class LogText:
    """The checkpoints of a listing; of a graph's steps the nodes are shown."""

    def __init__(
        self, out: Output, store: Store, listing: HistoryListing, shown: Shown
    ) -> None:
        self.out, self.store = out, store
        self.listing, self.shown = listing, shown
        self._widths: dict[int, int] = {}

    def continued(self, listing: HistoryListing) -> LogText:
        """The text of a listing that goes on below this one."""
        text = LogText(self.out, self.store, listing, self.shown)
        text._widths = self._widths
        return text

    def _differences(self) -> Iterator[Diff] | None:
        """The changes of each checkpoint, ``None`` if they are not shown."""
        if not self.shown.changes:
            return None
        verbose = self.shown.verbose
        return difference_views.differences_of(
            self.store, self._checkpoints, bookkeeping=verbose
        )

    # --- documents --------------------------------------------------------------------

    def documents(self) -> Iterator[Mapping[str, object]]:
        """A document for each checkpoint."""
        differences = self._differences()
        for entry in self.listing.entries:
            checkpoint = entry.checkpoint
            document = {
                "reference": self.reference(entry),
                **checkpoint_document(checkpoint),
                "rewound": entry.is_rewound,
                "heads": list(entry.heads),
                "message": self._message_document(checkpoint),
            }
            if checkpoint.id in self._with_files:
                document["files"] = "changed"
            if checkpoint.id in self._nodes:
                document["nodes"] = list(self._nodes[checkpoint.id])
            if differences is not None:
                document["changes"] = difference_views.change_documents(
                    next(differences)
                )
            yield document

    def _message_document(self, checkpoint: Checkpoint) -> object:
        found = self._messages.get(checkpoint.id)
        return None if found is None else msgspec.to_builtins(found)

    # --- lines ------------------------------------------------------------------------

    def lines(self) -> Iterator[Line]:
        """A line for each checkpoint, with its changes below it."""
        differences = self._differences()
        rows = map(self._row, self.listing.entries)
        width = self.out.columns or WIDTH
        for line in self.out.table(rows, widths=self._widths):
            yield line
            if differences is not None:
                changed = change_lines(next(differences), "    ", width)
                yield from map(self.out.fitted, changed)

    def graph(self) -> Iterator[Line]:
        """The same lines beside the tree of the checkpoints."""
        glyphs = self.out.glyphs
        rows: list[Sequence[Cell]] = []
        for row in lane_views.laid_out(self.listing.entries):
            entry = row.node
            sign = glyphs.rewound if entry and entry.is_rewound else glyphs.node
            lanes: Span = (drawn(row, glyphs, sign), "")
            rows.append([lanes, *(self._row(entry) if entry else ())])
        return self.out.table(rows)

    def _row(self, entry: LineageEntry) -> list[Cell]:
        checkpoint = entry.checkpoint
        faint = "faint" if entry.is_rewound else ""
        reference: Span = (self.reference(entry), faint or "reference")
        marked = [*self._heads(entry), *marks(checkpoint)]
        if self.shown.oneline:
            return [reference, spaced(marked)]
        return [
            reference,
            (self._time(checkpoint), "faint"),
            spaced(
                [
                    *marked,
                    (self._kind(checkpoint), faint or "label"),
                    ("files" if checkpoint.id in self._with_files else "", "label"),
                    (self._step(checkpoint), "name"),
                    *self._said(checkpoint, faint),
                    (pairs(self._metadata(checkpoint)), "faint"),
                ],
            ),
        ]

    def _time(self, checkpoint: Checkpoint) -> str:
        at = checkpoint.saved_at
        return time(at) if self.shown.clock_times else self.out.time(at)

    def _heads(self, entry: LineageEntry) -> Iterator[Span]:
        for name in entry.heads:
            is_own = self.listing.family is None and name == self.listing.thread
            yield ("(head)" if is_own else f"({name})", "head")

    def _said(self, checkpoint: Checkpoint, style: str) -> Sequence[Span]:
        message = self._messages.get(checkpoint.id)
        return () if message is None else message_spans(self.out, message, style)

    def _kind(self, checkpoint: Checkpoint) -> str:
        """The kind of a checkpoint, unless it is usual or the message says the same."""
        message = self._messages.get(checkpoint.id)
        told = {PLAIN_KIND, message.role if message else ""}
        return "" if checkpoint.kind in told else checkpoint.kind

    def _step(self, checkpoint: Checkpoint) -> str:
        if self.shown.verbose or checkpoint.id not in self._nodes:
            return ""
        return step_text(checkpoint, self._nodes[checkpoint.id])

    def _metadata(self, checkpoint: Checkpoint) -> Mapping[str, object]:
        is_step = not self.shown.verbose and checkpoint.id in self._nodes
        return own_metadata(checkpoint) if is_step else checkpoint.metadata

    # --- names and what is read -------------------------------------------------------

    def reference(self, entry: LineageEntry) -> str:
        """The name of a checkpoint: thread and step, or the start of its id."""
        if entry.is_rewound:
            return short_id(self.store, entry.checkpoint.id)
        names = entry.threads
        preferred = (self.listing.thread, entry.checkpoint.thread, names[0])
        thread = next(name for name in preferred if name in names)
        if thread == self.listing.thread:
            thread = self.listing.named or thread
        return f"{thread}@{entry.checkpoint.step}"

    @property
    def _checkpoints(self) -> list[Checkpoint]:
        return [entry.checkpoint for entry in self.listing.entries]

    @cached_property
    def _messages(self) -> dict[str, MessageSummary]:
        """The last message of each checkpoint, if its parent has another one."""
        try:
            return new_messages(self.store, self._checkpoints, self.out.width)
        except HoldfastError as error:
            # The log of a damaged store is still useful without its messages.
            self.out.note(f"messages are left out: {for_command_line(str(error))}")
            return {}

    @cached_property
    def _with_files(self) -> frozenset[str]:
        """The ids of the checkpoints that changed files."""
        try:
            return self.store.runner.run(files.with_other_files, self._checkpoints)
        except HoldfastError:
            return frozenset()  # likewise, in a damaged store

    @cached_property
    def _nodes(self) -> dict[str, list[str]]:
        try:
            return self.store.runner.run(
                row_views.nodes_by_checkpoint, self._checkpoints
            )
        except HoldfastError:
            # Likewise without the nodes of a graph.
            return {}


def drawn(row: LaneRow[N], glyphs: Glyphs, node: str) -> str:
    """A row of the graph; ``node`` is the sign of its node."""
    if row.node is not None:
        signs = [glyphs.line if used else " " for used in row.lanes]
        signs[row.at] = node
        return " ".join(signs)
    return "".join(_joining(row, lane, glyphs) for lane in range(len(row.lanes)))


def _joining(row: LaneRow[N], lane: int, glyphs: Glyphs) -> str:
    last = row.ending[-1]
    between = row.at <= lane < last
    after = glyphs.across if between else " " if lane < len(row.lanes) - 1 else ""
    if lane == row.at:
        return glyphs.branch + after
    if lane in row.ending:
        return (glyphs.corner if lane == last else glyphs.join) + after
    if row.lanes[lane]:
        return (glyphs.cross if between else glyphs.line) + after
    return (glyphs.across if between else " ") + after
