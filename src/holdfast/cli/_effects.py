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


def behind_lines(out: Output, behind: Sequence[Effect], listing: str) -> Iterator[Line]:
    """How many effects a move leaves behind, and the newest of them.

    ``listing`` are the arguments with which `holdfast effects` lists all.
    """
    if not behind:
        return
    stay = "stays" if len(behind) == 1 else "stay"
    yield ((f"  {counted(len(behind), 'effect')} {stay} behind:", "bad"),)
    for effect in behind[-MOST:]:
        yield out.fitted((("    ", ""), *effect_line(out, effect)))
    if len(behind) > MOST:
        earlier = f"and {len(behind) - MOST} earlier: holdfast effects {listing}"
        yield ((f"    {earlier}", "faint"),)
