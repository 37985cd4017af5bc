"""How a session's operations run: in a thread, through a writer, or in the loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from holdfast._api.store import AsyncStore, Store
from holdfast._engine.context import Context
from holdfast._port import run

T = TypeVar("T")

AnyStore = Store | AsyncStore
Operation = Callable[[Context], Coroutine[Any, Any, T]]


class Runner:
    """Runs operations over a store of either kind, always awaited."""

    def __init__(self, store: AnyStore) -> None:
        # Both stores are made of these, and both are our own.
        self._context: Context = store._context  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        self._passage = store._passage if isinstance(store, AsyncStore) else None  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

    async def read(self, operation: Operation[T]) -> T:
        """The result of an operation that changes nothing."""
        if self._passage is not None:
            return await self._passage.run(operation(self._context))
        return await _in_thread(operation(self._context))

    async def change(self, operation: Operation[T]) -> T:
        """The result of an operation, whatever becomes of the caller meanwhile."""
        return await settled(self.read(operation))

    async def save(self, operation: Operation[T], thread: str) -> T:
        """The same of one that saves to a thread, with what others save then."""
        if self._passage is None:
            return await self.change(operation)
        passage = self._passage
        return await settled(passage.save(operation(passage.saving), thread))


async def _in_thread(operation: Coroutine[Any, Any, T]) -> T:
    try:
        return await asyncio.to_thread(run, operation)
    finally:
        # Cancelled while waiting for a thread, it never ran and would warn of it.
        # One that is running in its thread refuses, and goes on.
        with contextlib.suppress(ValueError):
            operation.close()


async def settled(operation: Coroutine[Any, Any, T]) -> T:
    """The result of a change; who is cancelled meanwhile is told how it ended.

    A cancelled caller waits until the change is made or has failed. Its error then has
    the failure as its cause, and none if the change was made.
    """
    task = asyncio.ensure_future(operation)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = cancelled or error
    if cancelled is None or task.cancelled():
        return task.result()
    failure = task.exception()
    cancelled.add_note(
        "the change was made before" if failure is None else "the change was not made"
    )
    raise cancelled from failure
