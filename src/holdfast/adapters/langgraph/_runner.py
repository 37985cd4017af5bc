"""Runs operations for sync and async callers of one object."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from importlib.util import find_spec
from typing import Generic, ParamSpec, Self, TypeVar

import holdfast
from holdfast import AsyncStore, Store
from holdfast.adapters.langgraph._results import Ready
from holdfast.errors import Unsupported
from holdfast.operations import Context, OpenOptions, Operation
from holdfast.operations.stores import given

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", bound="StoreOwner")

Address = str | os.PathLike[str]
AnyStore = Store | AsyncStore


class SaverRunner:
    """Runs operations over a store of either kind, for sync and for async callers.

    Sync calls run in the calling thread. Async calls run in a thread, or in the event
    loop if the store's backend is awaited.
    """

    def __init__(self, store: AnyStore) -> None:
        self._is_awaited = isinstance(store, AsyncStore)
        self._sync = store.runner.for_sync()
        self._async = store.runner.for_async()
        self.context = self._async.context
        self._loop = running_loop()

    def run(
        self, operation: Operation[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """The result of an operation for a sync caller."""
        if self._sync is not None:
            return self._sync.run(operation, *args, **kwargs)
        loop = self._loop
        if loop is None or loop.is_closed() or loop is running_loop():
            raise Unsupported(
                "this store is async and cannot be used by a sync call here; call the"
                " method that begins with 'a', or open the store with holdfast.open()"
            )
        awaited = self._async.run(operation, *args, **kwargs)
        return asyncio.run_coroutine_threadsafe(awaited, loop).result()

    @property
    def must_be_awaited(self) -> bool:
        """True if the caller is a coroutine that should not be blocked."""
        return self._is_awaited and running_loop() is not None

    async def arun(
        self, operation: Operation[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """The result of an operation for an async caller."""
        if self._sync is None:
            self._loop = asyncio.get_running_loop()
        return await self._async.run(operation, *args, **kwargs)

    def each(self, items: AsyncIterator[T]) -> Iterator[T]:
        """The items of a listing, one by one, for a sync caller."""
        while (item := self.run(_next, items)) is not None:
            yield item

    async def aeach(self, items: AsyncIterator[T]) -> AsyncIterator[T]:
        """The items of a listing, one by one, for an async caller."""
        while (item := await self.arun(_next, items)) is not None:
            yield item


async def _next(context: Context, items: AsyncIterator[T]) -> T | None:
    del context  # the context was used when the items were made
    return await anext(items, None)


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop of the calling thread, if it runs one."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class StoreOwner:
    """The base of the saver and the memory: a store, which they may have opened."""

    def _take_store(self, store: Address | AnyStore, options: OpenOptions) -> None:
        self._owned: Store | None = None
        if isinstance(store, Store | AsyncStore):
            store = given(store, options)
        else:
            store = self._owned = holdfast.open(store, **with_defaults(store, options))
        self._runner = SaverRunner(store)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the store if it was opened here."""
        if self._owned is not None:
            self._owned.close()

    def setup(self) -> Ready:
        """Do nothing: a store is ready once it is open. May be awaited."""
        return Ready()


def with_defaults(address: Address, options: OpenOptions) -> OpenOptions:
    """The options with compression for a file, because checkpoints repeat a lot."""
    is_file = not str(address).startswith(("dir:", "postgres"))
    return {"compress": True, **options} if is_file and _can_compress() else options


def _can_compress() -> bool:
    return find_spec("zstandard") is not None


class Scoped(Generic[S]):
    """A saver or a memory; its store is open within ``with`` or ``async with``."""

    def __init__(
        self, make: Callable[[AnyStore], S], address: Address, options: OpenOptions
    ) -> None:
        self._make = make
        self._address = address
        self._options = with_defaults(address, options)
        self._store: AnyStore | None = None
        self._made: S | None = None

    def __enter__(self) -> S:
        self._store = holdfast.open(self._address, **self._options)
        self._made = self._make(self._store)
        return self._made

    def __exit__(self, *_: object) -> None:
        assert isinstance(self._store, Store)
        assert self._made is not None
        self._made.close()
        self._store.close()

    async def __aenter__(self) -> S:
        self._store = await holdfast.open_async(self._address, **self._options)
        self._made = self._make(self._store)
        return self._made

    async def __aexit__(self, *_: object) -> None:
        assert isinstance(self._store, AsyncStore)
        assert self._made is not None
        self._made.close()
        await self._store.close()
