"""Texts that are too long to show: one way to cut them, and one mark for the cut."""

from __future__ import annotations

import unicodedata

ELLIPSIS = "…"


def shortened(text: str, longest: int) -> str:
    """A text of at most so many characters; if it was cut, its end is an ellipsis.

    The cut is never inside of what people see as one character.
    """
    if len(text) <= longest:
        return text
    end = longest - 1
    while end > 1 and _continues(text, end):
        end -= 1
    return text[:end].rstrip() + ELLIPSIS


def _continues(text: str, place: int) -> bool:
    """True if a position is inside of what people see as one character."""
    before, here = text[place - 1], text[place]
    if ZERO_WIDTH_JOINER in (before, here):
        return True
    if unicodedata.category(here).startswith("M"):
        return True
    if any(first <= here <= last for first, last in CONTINUING):
        return True
    return here in FLAG_LETTERS and _flags_before(text, place) % 2 == 1


def _flags_before(text: str, place: int) -> int:
    head = text[:place]
    return len(head) - len(head.rstrip(FLAG_LETTERS))


ZERO_WIDTH_JOINER = "\u200d"
# Skin tones, tag letters after a flag, and the later parts of a Hangul syllable: each
# the first and the last.
CONTINUING = (
    ("\U0001f3fb", "\U0001f3ff"),
    ("\U000e0020", "\U000e007f"),
    ("\u1160", "\u11ff"),
    ("\ud7b0", "\ud7fb"),
)
FLAG_LETTERS = "".join(map(chr, range(0x1F1E6, 0x1F200)))
