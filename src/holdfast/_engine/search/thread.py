"""The threads that a search reads, several at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, cast

from holdfast._engine.cache import OpenedCheckpoint
from holdfast._engine.context import Context
from holdfast._engine.threads.drafts import read_bodies, read_values
from holdfast._messages.attachments import whole
from holdfast._port import Pieces, SegmentsKey
from holdfast._values import codec
from holdfast._values.manifest import value_of
from holdfast._values.records import Checkpoint, ThreadRecord
from holdfast._values.rope import Rope, joined
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


async def fetch_messages(context: Context, threads: Sequence[SearchedThread]) -> None:
    """Read the messages of several threads at once.

    Threads that cannot be read are left out: reading one by itself raises the reason.
    """
    with suppress(Corrupt):
        await read_bodies(context, [one.known for one in threads], ("messages",))


async def read_messages(
    context: Context, heads: Sequence[Checkpoint]
) -> list[list[object] | None]:
    """The messages of several heads, ``None`` for one that cannot be read.

    Nothing else is made of them: the first search comes through here with all threads.
    """
    try:
        return [*await _read_messages(context, heads)]
    except Corrupt:
        if len(heads) == 1:
            return [None]
        return [(await read_messages(context, [head]))[0] for head in heads]


async def _read_messages(
    context: Context, heads: Sequence[Checkpoint]
) -> Iterator[list[object]]:
    values = [value_of(head, "messages") for head in heads]
    keys = [
        SegmentsKey(head.family, value.runs)
        for head, value in zip(heads, values, strict=True)
        if isinstance(value, Rope)
    ]
    found = await context.backend.read(keys)
    pieces = iter(found)
    return (
        _elements(_text(value, next(pieces)) if isinstance(value, Rope) else value)
        for value in values
    )


def _text(rope: Rope, pieces: Pieces | None) -> bytearray:
    if pieces is None:
        raise Corrupt("the messages of a thread", "segments are missing")
    return joined(rope, [segment.data for segment in pieces.segments])


def _elements(text: bytes | bytearray | None) -> list[object]:
    found = codec.decode(text) if text is not None else None
    return cast("list[object]", found) if isinstance(found, list) else []
