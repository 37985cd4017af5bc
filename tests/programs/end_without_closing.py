"""Ends without closing its store, as programs do.

usage: end_without_closing.py URL blocking|awaited|connecting

One line of JSON: the step of its last save.
"""

from __future__ import annotations

import asyncio
import sys

import holdfast
from support.report import report


def leave(url: str) -> None:
    store = holdfast.open(url)
    store.thread("left").append(log=[1])
    report(store.thread("left").append(log=[2]).step)


async def leave_awaited(url: str) -> None:
    store = await holdfast.open_async(url)
    await store.thread("left").append(log=[1])
    report((await store.thread("left").append(log=[2])).step)


async def leave_while_connecting(url: str) -> None:
    """More callers than connections, and no time until another connection is there."""
    store = await holdfast.open_async(f"{url}?options=-c%20post_auth_delay%3D1")
    await store.thread("left").append(log=[1])
    left = store.thread("left")
    report((await left.append(log=[2])).step)
    await asyncio.gather(*(left.load() for _ in range(4)))


if __name__ == "__main__":
    if sys.argv[2] == "blocking":
        leave(sys.argv[1])
    elif sys.argv[2] == "awaited":
        asyncio.run(leave_awaited(sys.argv[1]))
    else:
        asyncio.run(leave_while_connecting(sys.argv[1]))
