"""The context: what every operation gets as its first argument."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Protocol, Self

import msgspec

from holdfast._engine.cache import Cache, OpenedCheckpoint
from holdfast._port import Backend, Encrypted, ThreadKey
from holdfast._values import rope as ropes
from holdfast._values.records import Checkpoint, ThreadRecord
from holdfast._values.rope import Body, Rope
from holdfast.errors import NotFound


class Context(msgspec.Struct, frozen=True):
    """A backend with the store's cache, clock and source of ids.

    ``after_save`` is called after each committed save; it applies the retention.
    ``observer`` watches the operations of the store. ``traceparent`` is the trace of
    which an operation is part; the checkpoints that it saves keep it. ``keys`` is the
    layer that encrypts, if one does. ``address`` is that of the store, to be shown.
    """

    backend: Backend
    cache: Cache
    clock: Callable[[], int]
    new_id: Callable[[], str]
    after_save: Callable[[Context], Awaitable[None]] | None = None
    observer: Observer | None = None
    traceparent: str | None = None
    keys: Encrypted | None = None
    address: str = ""

    async def find_thread(self, name: str) -> ThreadRecord | None:
        """A thread that is not deleted, ``None`` if there is none."""
        [thread] = await self.backend.read([ThreadKey(name)])
        return thread if thread and thread.deleted_at is None else None

    async def get_thread(self, name: str) -> ThreadRecord:
        """A thread that is not deleted; `NotFound` if there is none."""
        thread = await self.find_thread(name)
        if thread is None:
            raise missing_thread(name)
        return thread

    async def get_head(self, name: str) -> Checkpoint:
        """The head of a thread; `NotFound` before its first save."""
        thread = await self.find_thread(name)
        if thread is None or thread.head is None:
            raise missing_thread(name)
        return thread.head

    def known(self, thread: str, checkpoint: Checkpoint) -> OpenedCheckpoint:
        """A checkpoint with the bytes that the cache has of it, if it has any."""
        return self.cached(thread, checkpoint) or OpenedCheckpoint.of(checkpoint)

    def cached(self, thread: str, checkpoint: Checkpoint) -> OpenedCheckpoint | None:
        """A checkpoint that is taken out of the cache, ``None`` if it is not there."""
        known = self.cache.take(thread)
        # Compared by digest: after Git has changed a folder, a number can mean another.
        if known is not None and known.head.sha256 == checkpoint.sha256:
            known.head = checkpoint  # the label and tags may have changed
            return known
        if known is not None:
            self.cache.give(thread, known)
        return None

    async def body(self, known: OpenedCheckpoint, name: str, rope: Rope) -> Body:
        """The bytes of one value of a checkpoint; reads them if they are not there."""
        body = known.bodies.get(name)
        if body is None:
            segments = await self.backend.segments(known.head.family, rope.runs)
            body = ropes.read_body(rope, [segment.data for segment in segments])
            known.bodies[name] = body
        return body


class Observation(Protocol):
    """A watched operation: entered before it starts, left after its end."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

    def context(self, context: Context) -> Context:
        """The context to run in, instead of the store's own."""
        ...

    def finish(self, result: object) -> None:
        """Take note of the result; not called if the operation raised."""
        ...


class Observer(Protocol):
    """Watches the operations of a store; the runners ask it for each of them."""

    def observe(
        self, operation: Callable[..., object], args: Sequence[object]
    ) -> Observation:
        """An operation that is about to start; ``args`` are without the context."""
        ...


def missing_thread(name: str) -> NotFound:
    """The error for a thread that does not exist, or was never saved to."""
    return NotFound(
        f"thread {name!r} does not exist; save to it first, or see threads()",
        thread=name,
    )
