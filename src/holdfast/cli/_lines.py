"""Checkpoints, messages and differences as styled lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from holdfast._messages.transcript import role_of
from holdfast._values.records import Checkpoint
from holdfast.cli.terminal.tables import Cell, Line, Span
from holdfast.diff import Diff
from holdfast.views.differences import counts
from holdfast.views.messages import one_line_text


def marks(checkpoint: Checkpoint) -> list[Span]:
    """The label and the tags of a checkpoint."""
    label = [(f"[{checkpoint.label}]", "label")] if checkpoint.label else []
    return label + [(f"#{tag}", "tag") for tag in checkpoint.tags]


def change_lines(found: Diff, indent: str = "") -> Iterator[Line]:
    """A line for each change, and one that counts them."""
    if not found.changes:
        yield ((f"{indent}no difference", "faint"),)
        return
    for change in found.changes:
        yield ((f"{indent}{change}", change.op),)
    yield ((f"{indent}{counts(found)}", "faint"),)


def message_rows(messages: Iterable[object]) -> Iterator[list[Cell]]:
    """A row for each message."""
    for position, message in enumerate(messages):
        number: Cell = (f"[{position}]", "faint")
        text: Cell = (one_line_text(message, position), "")
        yield [number, (role_of(message), "name"), text]
