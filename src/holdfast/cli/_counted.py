"""Numbers of things in words."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """So many of something: ``1 thread``, ``1,204 threads``, ``2 journal entries``."""
    if number == 1:
        return f"1 {noun}"
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {plural}"
