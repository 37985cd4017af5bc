"""How one object serves both kinds of callers: those that wait and those that await."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from importlib.util import find_spec
from types import TracebackType
from typing import Any, Generic, TypeVar

import holdfast
from holdfast._api.options import Options
from holdfast._api.store import AsyncStore, Store
from holdfast._engine.context import Context
from holdfast._port import run
from holdfast.errors import Unsupported

T = TypeVar("T")
S = TypeVar("S")

Address = str | os.PathLike[str]
AnyStore = Store | AsyncStore


class Runner:
    """Runs operations over a store of either kind.

    Calls that wait run where they are made, in whatever thread. Calls that are awaited
    go to a thread, or to the connections of a store that is awaited all the way.
    """

    def __init__(self, store: AnyStore) -> None:
        # Both stores are made of these, and both are our own.
        self.context: Context = store._context  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        self._passage = store._passage if isinstance(store, AsyncStore) else None  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        self._loop: asyncio.AbstractEventLoop | None = None
        with contextlib.suppress(RuntimeError):
            self._loop = asyncio.get_running_loop()

    def run(self, operation: Coroutine[Any, Any, T]) -> T:
        """The result of an operation, waited for."""
        if self.context.backend.blocking:
            return run(operation)
        loop = self._loop
        if loop is None or loop.is_closed() or _is_running(loop):
            operation.close()
            raise Unsupported(
                "this store is awaited and cannot be waited for here; call the method"
                " that begins with 'a', or open the store with holdfast.open()"
            )
        return asyncio.run_coroutine_threadsafe(operation, loop).result()

    async def arun(self, operation: Coroutine[Any, Any, T]) -> T:
        """The result of an operation, awaited."""
        if not self.context.backend.blocking:
            self._loop = asyncio.get_running_loop()
            return await operation
        if self._passage is not None:
            return await self._passage.run(operation)
        try:
            return await asyncio.to_thread(run, operation)
        finally:
            # Cancelled while waiting for a thread, it never ran and would warn of it.
            # One that is running in its thread refuses, and goes on.
            with contextlib.suppress(ValueError):
                operation.close()

    def each(self, items: AsyncIterator[T]) -> Iterator[T]:
        """The items of a listing, waited for one by one."""
        while (item := self.run(_next(items))) is not None:
            yield item

    async def aeach(self, items: AsyncIterator[T]) -> AsyncIterator[T]:
        """The items of a listing, awaited one by one."""
        while (item := await self.arun(_next(items))) is not None:
            yield item


async def _next(items: AsyncIterator[T]) -> T | None:
    return await anext(items, None)


def _is_running(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


def opened(address: Address, options: Options) -> Store:
    """A store, compressed unless something else is asked for."""
    return holdfast.open(address, **with_defaults(address, options))


def with_defaults(address: Address, options: Options) -> Options:
    """The options for a store of checkpoints, in which much is alike."""
    is_file = not str(address).startswith(("dir:", "postgres"))
    return {"compress": True, **options} if is_file and _can_compress() else options


def _can_compress() -> bool:
    for module in ("compression.zstd", "backports.zstd"):
        with contextlib.suppress(ModuleNotFoundError):
            if find_spec(module) is not None:
                return True
    return False


class Opening(Generic[S]):
    """Something over a store that is open within ``with`` or ``async with``."""

    def __init__(
        self, make: Callable[[AnyStore], S], address: Address, options: Options
    ) -> None:
        self._make = make
        self._address = address
        self._options = with_defaults(address, options)
        self._store: AnyStore | None = None

    def __enter__(self) -> S:
        self._store = holdfast.open(self._address, **self._options)
        return self._make(self._store)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert isinstance(self._store, Store)
        self._store.close()

    async def __aenter__(self) -> S:
        self._store = await holdfast.open_async(self._address, **self._options)
        return self._make(self._store)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert isinstance(self._store, AsyncStore)
        await self._store.close()
