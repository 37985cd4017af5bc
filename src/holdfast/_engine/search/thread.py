"""The threads that a search reads, several at a time."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, cast

from holdfast._engine.cache import OpenedCheckpoint
from holdfast._engine.context import Context
from holdfast._engine.threads.drafts import read_bodies, read_values
from holdfast._messages.attachments import whole
from holdfast._values.records import ThreadRecord
from holdfast.errors import Corrupt
from holdfast.messages import AnyMessage, restored


class SearchedThread:
    """The head of a thread with messages; its values are read as they are needed."""

    def __init__(self, context: Context, thread: ThreadRecord) -> None:
        assert thread.head is not None
        self.context, self.thread = context, thread
        # The cache is left to the threads that the caller works on.
        self.known = OpenedCheckpoint.of(thread.head)
        self.values: dict[str, Any] = {}

    @property
    def messages(self) -> list[object]:
        """The messages, once they are read."""
        found = self.values.get("messages")
        return cast("list[object]", found) if isinstance(found, list) else []

    async def read(self, *names: str) -> None:
        """Read some of the values."""
        self.values |= await read_values(self.context, self.known, names)

    async def message(self, position: int) -> AnyMessage:
        """A message as `load` returns it, with its attachments."""
        message = cast("dict[str, Any]", self.messages[position])
        if "attachments" in message and "contents" not in self.values:
            await self.read("content_ids", "contents")
        return restored(*whole({**self.values, "messages": [message]}))


async def open_threads(
    context: Context, threads: Sequence[ThreadRecord | None]
) -> list[SearchedThread | None]:
    """Some threads with their messages; ``None`` for one that cannot be read."""
    opened = [_opened(context, thread) for thread in threads]
    await fetch_messages(context, [one for one in opened if one is not None])
    return [await _read(one) for one in opened]


async def fetch_messages(context: Context, threads: Sequence[SearchedThread]) -> None:
    """Read the messages of several threads at once.

    Those that cannot be read are left out: reading them by themselves raises why.
    """
    with suppress(Corrupt):
        await read_bodies(context, [one.known for one in threads], ("messages",))


def _opened(context: Context, thread: ThreadRecord | None) -> SearchedThread | None:
    if thread is None or thread.head is None:
        return None
    try:
        return SearchedThread(context, thread)
    except Corrupt:
        return None


async def _read(opened: SearchedThread | None) -> SearchedThread | None:
    try:
        if opened is not None:
            await opened.read("messages")
    except Corrupt:
        return None
    return opened
