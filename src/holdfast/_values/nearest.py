"""Names similar to a misspelt one, for suggestions in errors."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

ALIKE = 0.6


def nearest(wanted: str, known: Iterable[str], *, most: int = 5) -> list[str]:
    """The names most similar to another, and those that contain it or are in it."""
    # Imported late: only a mistake needs it.

    asked = wanted.casefold()
    folded = {name.casefold(): name for name in known}
    alike = get_close_matches(asked, folded, most, ALIKE)
    held = [
        f for f in folded if min(len(f), len(asked)) > 1 and (f in asked or asked in f)
    ]
    return [folded[name] for name in dict.fromkeys([*alike, *held])][:most]
