"""The reasons why threads wait, as a mark in a listing and as lines."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.cli._effects import effect_line
from holdfast.cli._text import counted
from holdfast.cli.terminal.output import Output
from holdfast.cli.terminal.tables import Line, Span
from holdfast.diff import excerpt
from holdfast.views.waiting import ThreadWaits


def waiting_mark(waiting: ThreadWaits) -> Span:
    """The reasons why a thread waits in a few words, an empty text without any."""
    counts = {
        "interrupted call": len(waiting.calls),
        "unsaved message": waiting.unsaved,
    }
    parts = [counted(count, noun) for noun, count in counts.items() if count]
    parts += ["a paused run"] if waiting.paused_run else []
    asked = len(waiting.interrupts)
    parts += [counted(asked, "interrupt")] if asked else []
    return f"waits: {', '.join(parts)}" if parts else "", "bad"


def waiting_lines(out: Output, waiting: ThreadWaits) -> Iterator[Line]:
    """A line for each thing that a thread waits for."""
    for call in waiting.calls:
        yield out.fitted((("  ", ""), *effect_line(out, call)))
    if waiting.unsaved:
        text = f"  {counted(waiting.unsaved, 'message')} not in a checkpoint yet"
        yield ((text, ""),)
    if waiting.paused_run is not None:
        yield ((f"  a paused run of {waiting.paused_run['agent']}", ""),)
    for asked in waiting.interrupts:
        where = f" in {asked.node}" if asked.node else ""
        line: Line = ((f"  interrupt{where}: ", ""), (excerpt(asked.value), "name"))
        yield out.fitted(line)
