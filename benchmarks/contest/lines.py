"""The report of a contest as lines of text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby

from benchmarks.contest.figures import NOISE, Figures, Ratios, Recorded
from benchmarks.contest.peers import PEERS, Peer
from benchmarks.contest.report import Report
from benchmarks.contest.units import duration, volume
from benchmarks.inner.cli import Cell, Line, Span, aligned

HEAD = ("on disk", "", "a turn", "", "grows", "load", "", "last ten", "", "lost")
HEAD_TWICE = ("on disk", "", "a turn", "", "grows")
RIGHT = frozenset(range(1, 11))
# From here on a ratio is shown without decimals.
LARGE = 10
EMPTY: Span = ("", "")
FOOTNOTE = (
    "Above 1x Holdfast is better. > at least: it stopped before."
    " * keeps the last state only."
)


def lines(report: Report) -> Iterator[Line]:
    """Where it was measured, the table, where we lose, and what is missing."""
    for name, value in report.environment.items():
        yield (f"{name}: ", "faint"), (value, "")
    yield ()
    yield from _table(f"turn {report.size.turns:,}", HEAD, _rows(report, _row))
    if report.size.twice:
        yield ()
        rows = _rows(report, _row_twice)
        yield from _table(f"turn {2 * report.size.turns:,}", HEAD_TWICE, rows)
    yield ((FOOTNOTE, "faint"),)
    yield ()
    yield from _losses(report)
    for figures in report.measured.values():
        yield from _events(figures)
    for key, reason in report.not_measured.items():
        name = PEERS[key].title
        yield (f"{name}: ", "name"), (f"not measured: {reason}", "changed")


def _table(
    title: str, head: Sequence[str], rows: Iterator[list[Cell]]
) -> Iterator[Line]:
    first: list[Cell] = [(title, "title"), *((name, "title") for name in head)]
    return aligned([first, *rows], RIGHT)


def _rows(
    report: Report, row: Callable[[Report, Figures], list[Cell]]
) -> Iterator[list[Cell]]:
    for group, members in groupby(report.measured.values(), lambda f: f.peer.group):
        yield [(group, "title")]
        yield from (row(report, figures) for figures in members)


def _row(report: Report, figures: Figures) -> list[Cell]:
    ratio = partial(_ratio, figures.peer, figures.recorded, report.ratios(figures))
    return [
        *_recorded(figures, figures.recorded, report.ratios(figures)),
        (duration(figures.first_load), ""),
        ratio("first load"),
        (duration(figures.last_ten), ""),
        ratio("last ten"),
        (str(figures.lost), "bad" if figures.lost else "good"),
    ]


def _row_twice(report: Report, figures: Figures) -> list[Cell]:
    assert figures.twice is not None
    return _recorded(figures, figures.twice, report.ratios_twice(figures))


def _recorded(figures: Figures, recorded: Recorded, ratios: Ratios) -> list[Cell]:
    ratio = partial(_ratio, figures.peer, recorded, ratios)
    star = "" if figures.peer.history else " *"
    return [
        ((f"  {figures.peer.name}", "name"), (star, "")),
        (volume(recorded.disk_bytes), ""),
        ratio("on disk"),
        (duration(recorded.last_turns), ""),
        ratio("a turn"),
        (times(recorded.growth), ""),
    ]


def _ratio(peer: Peer, recorded: Recorded, ratios: Ratios, name: str) -> Cell:
    """A ratio to ours, in a colour if it is another's: green where ours is better."""
    if name not in ratios:
        return EMPTY
    ratio = ratios[name]
    if peer.is_ours:
        return times(ratio), "faint"
    good = "good" if ratio > 1 + NOISE else ""
    if recorded.stopped:
        return f">{times(ratio)}", good
    return times(ratio), "bad" if ratio < 1 - NOISE else good


def times(ratio: float) -> str:
    """A ratio as text."""
    return f"{ratio:.0f}x" if ratio >= LARGE else f"{ratio:.2g}x"


def _losses(report: Report) -> Iterator[Line]:
    better = [_loss(figures, ratios) for figures, ratios in report.losses()]
    title = "Where Holdfast is worse:" if better else "Holdfast is worse nowhere."
    yield ((title, "title"),)
    yield from better


def _loss(figures: Figures, ratios: Ratios) -> Line:
    parts = ", ".join(f"{name} {times(ratio)}" for name, ratio in ratios.items())
    ours = PEERS[figures.peer.ours].name
    return (f"  {figures.peer.title}: ", "name"), (parts, ""), (f" of {ours}", "faint")


def _events(figures: Figures) -> Iterator[Line]:
    """What did not go as planned."""
    name: Span = (f"{figures.peer.title}: ", "name")
    for recorded in (figures.recorded, figures.twice):
        if recorded is not None and recorded.stopped:
            text = f"stopped at turn {recorded.turns:,}, {recorded.stopped}"
            yield name, (text, "changed")
            break
    if figures.lost:
        text = f"lost {figures.lost} of {figures.acknowledged} turns by a kill"
        yield name, (text, "bad"), (f" {figures.after_kill}", "faint")
