"""Checkpoints, messages and differences as styled lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from holdfast._messages.transcript import role_of
from holdfast._values.records import Checkpoint, ThreadRecord
from holdfast._values.shortening import shortened
from holdfast.cli._text import counted
from holdfast.cli.terminal.output import Output
from holdfast.cli.terminal.tables import Cell, Line, Span
from holdfast.diff import WIDTH, Diff, change_text
from holdfast.views import differences
from holdfast.views.messages import one_line_text
from holdfast.views.summaries import MessageSummary

# How many values a summary names.
MOST_VALUES = 10


def marks(checkpoint: Checkpoint) -> list[Span]:
    """The label and the tags of a checkpoint."""
    label = [(f"[{checkpoint.label}]", "label")] if checkpoint.label else []
    return label + [(f"#{tag}", "tag") for tag in checkpoint.tags]


def message_spans(out: Output, message: MessageSummary, style: str = "") -> list[Span]:
    """A message on one line: its role and its text, or its tool and the result."""
    text = shortened(message.text, out.width)
    if message.tool is None:
        return [(": ".join(filter(None, [message.role, text])), style)]
    arrow = (out.glyphs.arrow, "faint")
    return [("tool", style), (message.tool, style or "name"), arrow, (text, style)]


def policy_mark(thread: ThreadRecord) -> Span:
    """The policy for tools in a fork, an empty text if it has none."""
    return f"effects={thread.effects}" if thread.effects else "", "label"


def change_lines(found: Diff, indent: str = "", width: int = WIDTH) -> Iterator[Line]:
    """A line for each change, and one that counts them."""
    if not found.changes:
        yield ((f"{indent}no difference", "faint"),)
        return
    for change in found.changes:
        yield ((f"{indent}{change_text(change, width)}", change.op),)
    yield ((f"{indent}{differences.counts(found.changes)}", "faint"),)


def value_lines(found: Diff, indent: str = "", width: int = WIDTH) -> Iterator[Line]:
    """A line for each value of the state that changed, and one that counts the rest."""
    if not found.changes:
        yield ((f"{indent}no difference", "faint"),)
        return
    values = differences.changes_by_value(found)
    for name, changes in list(values.items())[:MOST_VALUES]:
        if len(changes) == 1:
            text = change_text(changes[0], width)
            yield ((f"{indent}{text}", changes[0].op),)
        else:
            text = differences.counts(changes, every=False)
            yield ((f"{indent}~ {name}  {text}", "changed"),)
    if len(values) > MOST_VALUES:
        more = counted(len(values) - MOST_VALUES, "more value")
        yield ((f"{indent}and {more}", "faint"),)


def message_rows(messages: Iterable[object], first: int = 0) -> Iterator[list[Cell]]:
    """A row for each message; ``first`` is the position of the first one."""
    for position, message in enumerate(messages, first):
        number: Cell = (f"[{position}]", "faint")
        text: Cell = (one_line_text(message, position), "")
        yield [number, (role_of(message), "name"), text]
