"""Threads that run the operations of a blocking backend for the async door."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from holdfast._backend import run

T = TypeVar("T")

# As many can share one commit, and wait for it together.
MOST_THREADS = 32


class Worker:
    """One hop to a thread for each operation, however many statements it makes.

    Cancelling the caller does not stop an operation that has begun: it is finished or
    fails as a whole, in its thread.
    """

    def __init__(self) -> None:
        # Imported here, and asyncio below: the blocking door needs neither.
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

        self._pool = ThreadPoolExecutor(MOST_THREADS, thread_name_prefix="holdfast")

    async def run(self, operation: Coroutine[Any, Any, T]) -> T:
        """The result of an operation."""
        try:
            return await self.call(lambda: run(operation))
        finally:
            # Cancelled while waiting for a thread, it never ran and would warn of it.
            # One that is running in its thread refuses, and goes on.
            with contextlib.suppress(ValueError):
                operation.close()

    async def call(self, work: Callable[[], T]) -> T:
        """The result of a blocking call."""
        import asyncio  # noqa: PLC0415

        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def close(self) -> None:
        """Wait for what is running and let the threads go."""
        self._pool.shutdown(wait=True)
