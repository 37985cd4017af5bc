"""Following the feed: waiting until there is news, or until it is too late."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from holdfast._values.records import Change, Page
from holdfast.backends.postgres._listener import Ear
from holdfast.backends.postgres._read import News

# Between looks at the feed while somebody who may be in it is under way.
SHORTEST_PAUSE, LONGEST_PAUSE = 0.01, 0.2


async def follow(
    read: Callable[[], Awaitable[News]], ear: Ear, timeout: float
) -> Page[Change]:
    """The first page that is not empty, or an empty one after the timeout."""
    deadline = time.monotonic() + timeout
    pause = SHORTEST_PAUSE
    while True:
        heard = ear.count
        news = await read()
        remaining = deadline - time.monotonic()
        if news.page or remaining <= 0:
            return news.page
        if await ear.listen():
            continue  # what came before we could hear it is seen now
        pause = min(pause * 2, LONGEST_PAUSE) if news.is_pending else SHORTEST_PAUSE
        longest = min(pause, remaining) if news.is_pending else remaining
        await ear.wait(longest, since=heard)
