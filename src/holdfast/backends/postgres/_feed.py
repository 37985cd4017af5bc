"""Following the feed: waiting for the next change, until a timeout."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from holdfast._values.records import Change, Page
from holdfast.backends.postgres._listener import Listener
from holdfast.backends.postgres._read import FeedPage

# Seconds between reads while a transaction that may add to the feed is running.
SHORTEST_PAUSE, LONGEST_PAUSE = 0.01, 0.2


async def follow(
    read: Callable[[], Awaitable[FeedPage]], listener: Listener, timeout: float
) -> Page[Change]:
    """The first page that is not empty, or an empty one after the timeout."""
    deadline = time.monotonic() + timeout
    pause = SHORTEST_PAUSE
    while True:
        heard = listener.count
        found = await read()
        remaining = deadline - time.monotonic()
        if found.page or remaining <= 0:
            return found.page
        if await listener.listen():
            continue  # read what was committed before we listened
        pause = min(pause * 2, LONGEST_PAUSE) if found.is_pending else SHORTEST_PAUSE
        longest = min(pause, remaining) if found.is_pending else remaining
        await listener.wait(longest, since=heard)
