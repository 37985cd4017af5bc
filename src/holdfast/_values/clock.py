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

    def uuid7() -> str:
        """A UUID of version 7: the time in milliseconds, then 74 random bits."""
        milliseconds = time.time_ns() // 1_000_000
        random_bits = int.from_bytes(os.urandom(10), "big")
        value = (milliseconds & 0xFFFF_FFFF_FFFF) << 80 | random_bits
        value = value & ~(0xF000 << 64) | 0x7000 << 64
        value = value & ~(0xC000 << 48) | 0x8000 << 48
        text = f"{value:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def now() -> int:
    """Microseconds since 1970, UTC."""
    return time.time_ns() // 1000
