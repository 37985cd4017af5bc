"""The default sources of time and ids; both can be replaced when opening a store."""

from __future__ import annotations

import sys
import time

if sys.version_info >= (3, 14):
    import uuid

    def uuid7() -> str:
        """A UUID of version 7: the time in milliseconds, a counter, random bits."""
        return str(uuid.uuid7())

else:
    import os
    from collections import deque

    # Random halves of ids are made in portions: each call of the system lets go of the
    # interpreter, which costs one of many threads more than all else about an id.
    _PORTION, _DIGITS = 256, 20
    _halves: deque[str] = deque()
    _VARIANT = {digit: "89ab"[int(digit, 16) % 4] for digit in "0123456789abcdef"}

    if hasattr(os, "register_at_fork"):
        # A child must not give the ids that its parent will give.
        os.register_at_fork(after_in_child=_halves.clear)

    def _make_halves() -> None:
        digits = os.urandom(_PORTION * _DIGITS // 2).hex()
        for n in range(0, len(digits), _DIGITS):
            d = digits[n : n + _DIGITS]
            _halves.append(f"7{d[:3]}-{_VARIANT[d[3]]}{d[4:7]}-{d[7:19]}")

    def uuid7() -> str:
        """A UUID of version 7: the time in milliseconds, then 74 random bits."""
        time_part = f"{time.time_ns() // 1_000_000 & 0xFFFF_FFFF_FFFF:012x}"
        while True:
            try:
                return f"{time_part[:8]}-{time_part[8:]}-{_halves.pop()}"
            except IndexError:
                _make_halves()


def now() -> int:
    """Microseconds since 1970, UTC."""
    return time.time_ns() // 1000
