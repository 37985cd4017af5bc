"""What every operation works with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from holdfast._engine.cache import Cache, Known
from holdfast._engine.packing import Packer
from holdfast._port import Backend, ThreadKey
from holdfast._values.manifest import decode_manifest
from holdfast._values.records import Checkpoint, ThreadRecord
from holdfast._values.rope import Body, Rope, read_body
from holdfast.errors import NotFound


class Context(msgspec.Struct, frozen=True):
    """A backend with the store's cache, packer, clock and source of ids.

    ``after_save`` is the store's housekeeping, called once a save is committed.
    """

    backend: Backend
    cache: Cache
    packer: Packer
    clock: Callable[[], int]
    new_id: Callable[[], str]
    after_save: Callable[[Context], Awaitable[None]] | None = None

    async def find_thread(self, name: str) -> ThreadRecord | None:
        """A living thread, ``None`` if there is none."""
        [thread] = await self.backend.read([ThreadKey(name)])
        return thread if thread and thread.deleted_at is None else None

    async def get_thread(self, name: str) -> ThreadRecord:
        """A living thread."""
        thread = await self.find_thread(name)
        if thread is None:
            raise missing_thread(name)
        return thread

    async def get_head(self, name: str) -> Checkpoint:
        """The head of a thread that has been saved to."""
        thread = await self.find_thread(name)
        if thread is None or thread.head is None:
            raise missing_thread(name)
        return thread.head

    def known(self, thread: str, checkpoint: Checkpoint) -> Known:
        """What the cache knows of a checkpoint, or its manifest alone."""
        known = self.cache.take(thread)
        # By digest: in a folder that Git has changed, numbers can have a new meaning.
        if known is not None and known.head.sha256 == checkpoint.sha256:
            known.head = checkpoint  # its label and tags may be newer
            return known
        if known is not None:
            self.cache.give(thread, known)
        return Known(checkpoint, decode_manifest(checkpoint))

    async def body(self, known: Known, name: str, rope: Rope) -> Body:
        """The bytes of one of a known checkpoint's values."""
        body = known.bodies.get(name)
        if body is None:
            segments = await self.backend.segments(known.head.family, rope.runs)
            body = read_body(rope, await self.packer.unpack(segments))
            known.bodies[name] = body
        return body


def missing_thread(name: str) -> NotFound:
    """A thread that is not there, or was never saved to."""
    return NotFound(
        f"thread {name!r} does not exist; save to it first, or see threads()",
        thread=name,
    )
