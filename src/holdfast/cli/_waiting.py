"""What threads wait for, as a mark in a listing and as lines."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.cli._effects import effect_line
from holdfast.cli._text import counted
from holdfast.cli.terminal.output import Output
from holdfast.cli.terminal.tables import Line, Span
from holdfast.views.waiting import Waiting


def waiting_mark(waiting: Waiting) -> Span:
    """What a thread waits for in a few words, an empty text if that is nothing."""
    counts = {
        "interrupted call": len(waiting.calls),
        "unsaved message": waiting.unsaved,
    }
    parts = [counted(count, noun) for noun, count in counts.items() if count]
    parts += ["a paused run"] if waiting.paused_run else []
    return f"waits: {', '.join(parts)}" if parts else "", "bad"


def waiting_lines(out: Output, waiting: Waiting) -> Iterator[Line]:
    """A line for each thing that a thread waits for."""
    for call in waiting.calls:
        yield out.fitted((("  ", ""), *effect_line(out, call)))
    if waiting.unsaved:
        text = f"  {counted(waiting.unsaved, 'message')} not in a checkpoint yet"
        yield ((text, ""),)
    if waiting.paused_run is not None:
        calls = counted(len(waiting.paused_run["calls"] or ()), "call")
        agent = waiting.paused_run["agent"]
        yield ((f"  a paused run of {agent}, to decide about {calls}", ""),)
