"""The store of an adapter: one that it was given, or one that it opens itself."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from typing import Any, TypeVar, Unpack, cast

import holdfast
from holdfast._api.options import OpenOptions
from holdfast._api.store import AsyncStore, Store
from holdfast.errors import Unstorable, Unsupported

__all__ = [
    "AnyStore",
    "BlockingStore",
    "StoreOrAddress",
    "UsedStore",
    "awaited",
    "given",
    "settled",
]

T = TypeVar("T")
S = TypeVar("S", bound=Store | AsyncStore)

AnyStore = Store | AsyncStore
StoreOrAddress = str | os.PathLike[str] | AnyStore


def awaited(store: AnyStore) -> AsyncStore:
    """The same store for callers that await; a blocking one then works in threads."""
    if isinstance(store, AsyncStore):
        return store
    runner = store.runner.for_async()
    return AsyncStore(runner.context, runner)


def given(store: S, options: OpenOptions) -> S:
    """A store that an adapter was given, or the scope of it that ``options`` names.

    All other options are refused: it is open already, and a key that had no effect
    would leave everything in the clear.
    """
    late = sorted(options.keys() - {"scope"})
    if late:
        raise Unstorable(
            late[0],
            "is for opening a store, and this one is open; pass it to holdfast.open,"
            " or give the address instead of the store",
        )
    scope = options.get("scope")
    return store if scope is None else cast("S", store.scope(scope))


class UsedStore:
    """The store behind an adapter of a framework that awaits, as ``awaited``.

    An address is opened with the options of `holdfast.open`, and `close` closes it
    again. A store that was given stays open: it is its owner's. The option ``scope``
    chooses a scope of either.
    """

    def __init__(self, store: StoreOrAddress, **options: Unpack[OpenOptions]) -> None:
        self._owned: Store | None = None
        if isinstance(store, Store | AsyncStore):
            store = given(store, options)
        else:
            store = self._owned = holdfast.open(store, **options)
        self.awaited = awaited(store)

    async def close(self) -> None:
        if self._owned is not None:
            await asyncio.to_thread(self._owned.close)


class BlockingStore:
    """The store behind an adapter of a ``framework`` that calls from many event loops.

    As `UsedStore`, but a blocking one.
    """

    def __init__(
        self, store: StoreOrAddress, framework: str, **options: Unpack[OpenOptions]
    ) -> None:
        self._owned: Store | None = None
        if isinstance(store, AsyncStore):
            store = _blocking(store, framework)
        if isinstance(store, Store):
            self.store = given(store, options)
        else:
            self.store = self._owned = holdfast.open(store, **options)

    def close(self) -> None:
        if self._owned is not None:
            self._owned.close()


def _blocking(store: AsyncStore, framework: str) -> Store:
    runner = store.runner.for_sync()
    if runner is None:
        raise Unsupported(
            f"{framework} calls from several event loops, and this store belongs to"
            " one; give its address, or a store of holdfast.open()"
        )
    return Store(runner.context)


async def settled(change: Coroutine[Any, Any, T]) -> T:
    """The result of a change; a cancelled caller waits until it is made or has failed.

    The caller's `CancelledError` then has the failure as its cause, and no cause if
    the change was made.
    """
    task = asyncio.ensure_future(change)
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
