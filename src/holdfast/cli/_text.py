"""Numbers, sizes, times and small mappings as text for people."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.diff import excerpt
from holdfast.views.documents import utc

_UNITS = ("B", "kB", "MB", "GB", "TB")
_STEP = 1000


def counted(number: int, noun: str) -> str:
    """A number and its noun: ``1 thread``, ``1,204 threads``, ``2 journal entries``."""
    if number == 1:
        return f"1 {noun}"
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {plural}"


def time(at: int) -> str:
    """A time in UTC, to the second."""
    found = utc(at)
    return str(at) if found is None else f"{found:%Y-%m-%d %H:%M:%SZ}"


def size(count: float) -> str:
    """A number of bytes."""
    for unit in _UNITS[:-1]:
        if count < _STEP:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= _STEP
    return f"{count:.1f} {_UNITS[-1]}"


def pairs(values: Mapping[str, object]) -> str:
    """A small mapping on one line."""
    return " ".join(f"{name}={excerpt(value)}" for name, value in values.items())
