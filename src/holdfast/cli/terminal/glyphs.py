"""The characters that graphs are drawn with, in Unicode or in ASCII."""

from __future__ import annotations

import msgspec

from holdfast._values.shortening import ELLIPSIS


class Glyphs(msgspec.Struct, frozen=True):
    """One set of characters."""

    node: str = "●"
    rewound: str = "○"
    line: str = "│"
    branch: str = "├"
    across: str = "─"
    join: str = "┴"
    cross: str = "┼"
    corner: str = "╯"
    end: str = "╰"
    arrow: str = "→"
    ellipsis: str = ELLIPSIS


UNICODE = Glyphs()
ASCII = Glyphs("*", "o", "|", "|", "-", "+", "+", "/", "`", "->", "...")
