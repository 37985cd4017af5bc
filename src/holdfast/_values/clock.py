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

    # Random bytes are asked for in portions: each call of the system lets go of the
    # interpreter, which costs one of many threads more than all else about an id.
    _portions: deque[bytes] = deque()

    if hasattr(os, "register_at_fork"):
        # A child must not give the ids that its parent will give.
        os.register_at_fork(after_in_child=_portions.clear)

    def _random_bits() -> int:
        while True:
            try:
                return int.from_bytes(_portions.pop(), "big")
            except IndexError:
                fresh = os.urandom(2560)
                _portions.extend([fresh[n : n + 10] for n in range(0, 2560, 10)])

    def uuid7() -> str:
        """A UUID of version 7: the time in milliseconds, then 74 random bits."""
        milliseconds = time.time_ns() // 1_000_000
        value = (milliseconds & 0xFFFF_FFFF_FFFF) << 80 | _random_bits()
        value = value & ~(0xF000 << 64) | 0x7000 << 64
        value = value & ~(0xC000 << 48) | 0x8000 << 48
        text = f"{value:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def now() -> int:
    """Microseconds since 1970, UTC."""
    return time.time_ns() // 1000
