"""The requests of a restore to a thread of either kind, awaited."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

from holdfast._api.thread import AsyncThread, Thread
from holdfast._engine.threads.lineage import Reference
from holdfast._values.files import Snapshot, Tree
from holdfast._values.records import Checkpoint

T = TypeVar("T")


class StoreSide(Protocol):
    """A thread as a restore sees it."""

    @property
    def thread(self) -> str:
        """The id of the thread."""
        ...

    async def find(self, reference: Reference) -> Checkpoint:
        """The checkpoint that a reference means."""
        ...

    async def head(self) -> Checkpoint | None:
        """The newest checkpoint, ``None`` if there is none."""
        ...

    async def tree(self, checkpoint: Checkpoint) -> Tree:
        """The files of a checkpoint; `NotFound` if it has none."""
        ...

    async def contents(
        self, paths: Sequence[bytes], checkpoint: Checkpoint
    ) -> list[bytes]:
        """The contents of some files of a checkpoint."""
        ...

    async def keep(
        self, snapshot: Snapshot, kind: str, expect: Checkpoint | None
    ) -> Checkpoint:
        """Save other files with the state of the head, which must be ``expect``."""
        ...

    async def move(self, target: str, expect: str) -> None:
        """Move the head, which must be ``expect``."""
        ...

    async def blocking(self, call: Callable[..., T], *arguments: Any) -> T:
        """Do something that waits for a disk."""
        ...

    def close(self) -> None:
        """End what was begun for it."""
        ...


class BlockingSide:
    """A `StoreSide` over a `Thread`: its coroutines never suspend."""

    def __init__(self, thread: Thread) -> None:
        self._of = thread
        self.thread = thread.id

    async def find(self, reference: Reference) -> Checkpoint:
        return self._of.get(reference)

    async def head(self) -> Checkpoint | None:
        return self._of.head

    async def tree(self, checkpoint: Checkpoint) -> Tree:
        return self._of.files(checkpoint)

    async def contents(
        self, paths: Sequence[bytes], checkpoint: Checkpoint
    ) -> list[bytes]:
        return self._of.read_files(paths, checkpoint)

    async def keep(
        self, snapshot: Snapshot, kind: str, expect: Checkpoint | None
    ) -> Checkpoint:
        return self._of.extend({}, files=snapshot, kind=kind, expect=expect)

    async def move(self, target: str, expect: str) -> None:
        self._of.rewind(target, expect=expect)

    async def blocking(self, call: Callable[..., T], *arguments: Any) -> T:
        return call(*arguments)

    def close(self) -> None:
        pass


class AwaitedSide:
    """A `StoreSide` over an `AsyncThread`; the disk is waited for in a thread.

    It has a thread of its own: restores that wait for one another in threads of a pool
    could take all of them, and the one that they wait for would get none.
    """

    def __init__(self, thread: AsyncThread) -> None:
        self._of = thread
        self.thread = thread.id
        self._worker = ThreadPoolExecutor(1)

    async def find(self, reference: Reference) -> Checkpoint:
        return await self._of.get(reference)

    async def head(self) -> Checkpoint | None:
        return await self._of.head

    async def tree(self, checkpoint: Checkpoint) -> Tree:
        return await self._of.files(checkpoint)

    async def contents(
        self, paths: Sequence[bytes], checkpoint: Checkpoint
    ) -> list[bytes]:
        return await self._of.read_files(paths, checkpoint)

    async def keep(
        self, snapshot: Snapshot, kind: str, expect: Checkpoint | None
    ) -> Checkpoint:
        return await self._of.extend({}, files=snapshot, kind=kind, expect=expect)

    async def move(self, target: str, expect: str) -> None:
        await self._of.rewind(target, expect=expect)

    async def blocking(self, call: Callable[..., T], *arguments: Any) -> T:
        loop = asyncio.get_running_loop()
        task = loop.run_in_executor(self._worker, functools.partial(call, *arguments))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            # What was begun on the disk ends before it is undone.
            await asyncio.wait([task])
            raise

    def close(self) -> None:
        self._worker.shutdown(wait=False)
