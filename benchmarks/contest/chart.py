"""Sizes on disk as a small SVG that reads on light and dark pages alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from math import log10
from typing import NamedTuple

from benchmarks.contest.units import volume

Scale = Callable[[float], float]

WIDTH, BAR, GAP, TOP = 800, 22, 12, 56
LEFT, RIGHT = 360, 130
# Middle tones, because an image cannot know what page it stands on.
TEXT, GRID, OURS, THEIRS, RAW = "#76808a", "#8c959f", "#2da44e", "#8b949e", "#58a6ff"


class Bar(NamedTuple):
    """One store: its size, and how many times the conversation that is."""

    name: str
    size: int
    ratio: float
    is_ours: bool = False


def chart(bars: Sequence[Bar], *, turns: int, raw: int) -> str:
    """Bars on a logarithmic scale, smallest first, the conversation before them."""
    itself = Bar("the conversation itself, as JSON", raw, 1.0)
    ordered = [itself, *sorted(bars, key=lambda bar: bar.size)]
    low, high = _decades([bar.size for bar in ordered])
    height = TOP + len(ordered) * (BAR + GAP) + 30

    def x(size: float) -> float:
        return LEFT + (log10(size) - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    parts = [*_heading(turns, height), *_grid(x, low, high, height)]
    for number, bar in enumerate(ordered):
        y = TOP + number * (BAR + GAP)
        colour = RAW if bar is itself else OURS if bar.is_ours else THEIRS
        parts += _drawn(bar, colour, y, x(bar.size))
    return "\n".join([*parts, "</svg>", ""])


def _decades(sizes: list[int]) -> tuple[int, int]:
    return int(log10(min(sizes))), int(log10(max(sizes))) + 1


def _heading(turns: int, height: int) -> list[str]:
    title = f"A {turns}-turn chat, every turn saved: bytes on disk (logarithmic)"
    frame = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"'
        f' width="{WIDTH}" height="{height}" role="img" fill="{TEXT}"'
        ' font-family="system-ui, sans-serif" font-size="13">'
    )
    heading = f'<text x="12" y="24" font-size="15" font-weight="600">{title}</text>'
    return [frame, f"<title>{title}</title>", heading]


def _grid(x: Scale, low: int, high: int, height: int) -> list[str]:
    lines = "".join(
        f"M{x(10**power):.0f} {TOP - 8}V{height - 24}" for power in range(low, high + 1)
    )
    numbers = "".join(
        f'<text x="{x(10**power):.0f}" y="{height - 8}">{volume(10**power)}</text>'
        for power in range(low, high + 1)
    )
    return [
        f'<path d="{lines}" stroke="{GRID}" stroke-opacity=".35"/>',
        f'<g text-anchor="middle" font-size="11">{numbers}</g>',
    ]


def _drawn(bar: Bar, colour: str, y: int, end: float) -> list[str]:
    middle = y + BAR // 2 + 5
    place = f'x="{LEFT}" y="{y}" width="{end - LEFT:.0f}" height="{BAR}" rx="3"'
    name, label = escape(bar.name), f"{volume(bar.size)} ({bar.ratio:.3g} x)"
    return [
        f'<text x="{LEFT - 10}" y="{middle}" text-anchor="end">{name}</text>',
        f'<rect {place} fill="{colour}"/>',
        f'<text x="{end + 8:.0f}" y="{middle}">{label}</text>',
    ]
