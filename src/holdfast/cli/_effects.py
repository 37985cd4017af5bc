"""Effects as styled lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.cli._text import counted
from holdfast.cli.terminal.output import Output
from holdfast.cli.terminal.tables import Line, Span
from holdfast.diff import excerpt
from holdfast.effects import Effect

# How many effects a summary names.
MOST = 5


def effect_line(out: Output, effect: Effect) -> Line:
    """A call with its arguments and how it ended."""
    arguments = excerpt(effect.arguments) if effect.arguments is not None else ""
    return (
        (effect.tool, "name"),
        (f" {arguments}" if arguments else "", ""),
        (f" {out.glyphs.arrow} ", "faint"),
        _outcome(effect),
        *_remarks(effect),
    )


def _outcome(effect: Effect) -> Span:
    if effect.status == "unknown":
        return "unknown: it began and did not end", "bad"
    if effect.status == "failed":
        return f"failed: {effect.error or ''}", "faint"
    return excerpt(effect.result), ""


def _remarks(effect: Effect) -> Iterator[Span]:
    if effect.replays is not None:
        yield f"  taken over from an earlier call of {effect.replays[0]}", "faint"
    if effect.undone:
        yield "  undone", "faint"


def behind_lines(
    out: Output,
    behind: Sequence[Effect],
    listing: str | None,
    *,
    of_thread: bool = False,
) -> Iterator[Line]:
    """The number of effects that a move leaves behind, and the newest of them.

    ``listing`` is the command that lists all; without one, all are given. With
    ``of_thread`` each has the name of its thread.
    """
    if not behind:
        return
    stay = "stays" if len(behind) == 1 else "stay"
    yield ((f"  {counted(len(behind), 'effect')} {stay} behind:", "bad"),)
    shown = behind if listing is None else behind[-MOST:]
    for effect in shown:
        thread = (f"{effect.thread}  ", "faint") if of_thread else ("", "")
        yield out.fitted((("    ", ""), thread, *effect_line(out, effect)))
    if len(behind) > len(shown):
        earlier = f"and {len(behind) - len(shown)} earlier: {listing}"
        yield ((f"    {earlier}", "faint"),)
