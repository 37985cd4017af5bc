"""The store for LangGraph's long-term memory: its methods, each sync and async."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Self, Unpack, cast

from langgraph.store.base import BaseStore, IndexConfig, Op, Result, TTLConfig

from holdfast.adapters.langgraph import _memory
from holdfast.adapters.langgraph._results import Count, Sweeping
from holdfast.adapters.langgraph._runner import Address, AnyStore, Scoped, StoreOwner
from holdfast.adapters.langgraph._sweeper import Sweeper
from holdfast.adapters.langgraph._types import Types
from holdfast.adapters.langgraph._vectors import VectorIndex
from holdfast.operations import OpenOptions

# Minutes between two sweeps; LangGraph's stores have the same default.
_MINUTES = 5


class HoldfastStore(StoreOwner, BaseStore):
    """A store for ``graph.compile(store=...)``: items in namespaces, with history.

    Opened like `HoldfastSaver`, also over the same store. ``ttl`` is LangGraph's
    config: an expired item is not returned; `sweep_ttl` deletes it. A query finds items
    by words; items with most of its words come first.

    ``index`` is LangGraph's config too, and needs the package sqlite-vec: with ``dims``
    and ``embed`` a query finds items by their meaning, the nearest first.
    """

    supports_ttl = True

    def __init__(
        self,
        store: Address | AnyStore,
        *,
        ttl: TTLConfig | None = None,
        index: IndexConfig | None = None,
        allow: Iterable[type] = (),
        **options: Unpack[OpenOptions],
    ) -> None:
        self._index = VectorIndex(index) if index else None
        self.ttl_config = ttl
        self._sweeper: Sweeper | None = None
        self._types = Types(allow)
        self._take_store(store, options)

    @classmethod
    def from_conn_string(
        cls,
        address: Address,
        *,
        ttl: TTLConfig | None = None,
        index: IndexConfig | None = None,
        **options: Unpack[OpenOptions],
    ) -> Scoped[Self]:
        """A store for ``with`` or ``async with``, closed at the end of the block."""
        return Scoped(lambda store: cls(store, ttl=ttl, index=index), address, options)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """The results of operations, which run one after the other."""
        ops = list(ops)
        embedded = self._index.embedded(ops) if self._index else None
        return self._runner.run(_memory.batch, self._types, ops, embedded)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        ops = list(ops)
        embedded = await self._index.aembedded(ops) if self._index else None
        return await self._runner.arun(_memory.batch, self._types, ops, embedded)

    # --- time to live -----------------------------------------------------------------

    def sweep_ttl(self) -> Count:
        """Delete the expired items and return their number.

        May be awaited; over an `AsyncStore` a coroutine has to await it.
        """
        if self._runner.must_be_awaited:
            return cast("Count", self.asweep_ttl())
        return Count(self._runner.run(_memory.sweep))

    async def asweep_ttl(self) -> int:
        return await self._runner.arun(_memory.sweep)

    def start_ttl_sweeper(
        self, sweep_interval_minutes: float | None = None
    ) -> Sweeping:
        """Sweep in a thread, by default every ``sweep_interval_minutes`` of ``ttl``.

        Without ``ttl`` nothing is swept. May be awaited. `stop_ttl_sweeper` ends it,
        and so do `close` and cancelling the future that this returns.
        """
        config = self.ttl_config
        if not config:
            return _ended()
        if self._sweeper is None or self._sweeper.ended.done():
            minutes = sweep_interval_minutes or config.get("sweep_interval_minutes")
            self._sweeper = Sweeper(self._sweep_once, float(minutes or _MINUTES))
        return self._sweeper.ended

    def stop_ttl_sweeper(self, timeout: float | None = None) -> Count:
        """Stop sweeping; true if the last sweep ended within ``timeout`` seconds.

        May be awaited; over an `AsyncStore` a coroutine has to await it.
        """
        sweeper, self._sweeper = self._sweeper, None
        if sweeper is None:
            return Count(True)
        sweeper.stop()
        if self._runner.must_be_awaited:
            return cast("Count", asyncio.to_thread(sweeper.wait, timeout))
        return Count(sweeper.wait(timeout))

    def _sweep_once(self) -> int:
        return self._runner.run(_memory.sweep)

    def close(self) -> None:
        """Stop sweeping, and close the store if it was opened here."""
        if self._sweeper is not None:
            self._sweeper.stop()
        super().close()


def _ended() -> Sweeping:
    ended = Sweeping()
    ended.set_result(None)
    return ended
