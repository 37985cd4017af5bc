"""The sizes on disk as a small SVG that reads on light and dark pages alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from math import log10

from benchmarks.report import Series, volume

Scale = Callable[[float], float]

WIDTH, BAR, GAP, TOP = 800, 22, 12, 56
LEFT, RIGHT = 360, 130
# Middle tones, because an image cannot know what page it stands on.
TEXT, GRID, OURS, THEIRS, RAW = "#76808a", "#8c959f", "#2da44e", "#8b949e", "#58a6ff"


def chart(series: Sequence[Series]) -> str:
    """Bars on a logarithmic scale, smallest first."""
    whole = max(s.turns for s in series)
    raw = next(s.raw for s in series if s.turns == whole)
    bars = [("the conversation itself, as JSON", raw, "1 x", RAW)]
    for s in sorted(series, key=lambda s: s.disk):
        # Saving whole states and appending make the same file: one bar for both.
        if "append" not in s.store:
            name = s.store.replace(" save", "")
            name += "" if s.turns == whole else f", {s.turns} turns"
            colour = OURS if s.store.startswith("Holdfast") else THEIRS
            bars.append((name, s.disk, f"{s.ratio:.3g} x", colour))
    low, high = _decades([size for _, size, _, _ in bars])
    height = TOP + len(bars) * (BAR + GAP) + 30

    def x(size: float) -> float:
        return LEFT + (log10(size) - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    parts = [*_heading(whole, height), *_grid(x, low, high, height)]
    for number, (name, size, ratio, colour) in enumerate(bars):
        y = TOP + number * (BAR + GAP)
        parts += _bar(name, f"{volume(size)} ({ratio})", colour, y, x(size))
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


def _bar(name: str, label: str, colour: str, y: int, end: float) -> list[str]:
    middle = y + BAR // 2 + 5
    place = f'x="{LEFT}" y="{y}" width="{end - LEFT:.0f}" height="{BAR}" rx="3"'
    return [
        f'<text x="{LEFT - 10}" y="{middle}" text-anchor="end">{escape(name)}</text>',
        f'<rect {place} fill="{colour}"/>',
        f'<text x="{end + 8:.0f}" y="{middle}">{label}</text>',
    ]
