"""The disk: how fast it says that something is safe, and how much is on it."""

from __future__ import annotations

import os
import tempfile
import time
from statistics import median

WRITES = 50
PAGE = bytes(4096)
# There is no fdatasync on every system.
sync = getattr(os, "fdatasync", os.fsync)


def sync_time(folder: str) -> float:
    """How long the disk takes to say that 4 kB are safe."""
    with tempfile.TemporaryFile(dir=folder) as file:

        def write() -> float:
            start = time.perf_counter()
            os.write(file.fileno(), PAGE)
            sync(file.fileno())
            return time.perf_counter() - start

        return median(write() for _ in range(WRITES))


def tree_size(folder: str) -> int:
    """The bytes of all files in a folder."""
    return sum(
        os.lstat(os.path.join(parent, name)).st_size
        for parent, _, names in os.walk(folder)
        for name in names
    )
