"""The characters that graphs are drawn with, in Unicode or in ASCII."""

from __future__ import annotations

import msgspec


class Glyphs(msgspec.Struct, frozen=True):
    """One set of characters."""

    node: str
    rewound: str
    line: str
    branch: str
    across: str
    join: str
    cross: str
    corner: str
    end: str
    arrow: str
    ellipsis: str


UNICODE = Glyphs(
    node="●",
    rewound="○",
    line="│",
    branch="├",
    across="─",
    join="┴",
    cross="┼",
    corner="╯",
    end="╰",
    arrow="→",
    ellipsis="…",
)
ASCII = Glyphs(
    node="*",
    rewound="o",
    line="|",
    branch="|",
    across="-",
    join="+",
    cross="+",
    corner="/",
    end="`",
    arrow="->",
    ellipsis="...",
)
