"""How a session's operations run: changes are finished though a caller is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar

from holdfast import AsyncStore, Store
from holdfast.operations import Named, Operation

P = ParamSpec("P")
T = TypeVar("T")

AnyStore = Store | AsyncStore


class SessionRunner:
    """Runs operations over a store of either kind; changes are not interrupted."""

    def __init__(self, store: AnyStore) -> None:
        self._runner = store.runner.for_async()

    async def read(
        self, operation: Operation[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """The result of an operation that changes nothing."""
        return await self._runner.run(operation, *args, **kwargs)

    async def change(
        self, operation: Operation[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """The result of a change, which is finished even if the caller is cancelled."""
        return await settled(self._runner.run(operation, *args, **kwargs))

    async def save(
        self,
        operation: Operation[Concatenate[Named, P], T],
        thread: Named,
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """As `change`, for a change of one thread; saves are committed together."""
        return await settled(self._runner.save(operation, thread, *args, **kwargs))


async def settled(operation: Coroutine[Any, Any, T]) -> T:
    """The result of a change; a cancelled caller waits until it is made or has failed.

    The caller's `CancelledError` then has the failure as its cause, and no cause if
    the change was made.
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
