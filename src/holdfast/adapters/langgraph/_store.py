"""The store for LangGraph's long-term memory: its methods, each sync and async."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self, Unpack

from langgraph.store.base import BaseStore, IndexConfig, Op, Result, TTLConfig

from holdfast.adapters.langgraph import _memory
from holdfast.adapters.langgraph._runner import Address, AnyStore, Scoped, StoreOwner
from holdfast.adapters.langgraph._types import Types
from holdfast.errors import Unsupported
from holdfast.operations import OpenOptions


class HoldfastStore(StoreOwner, BaseStore):
    """A store for ``graph.compile(store=...)``: items in namespaces, with history.

    Opened like `HoldfastSaver`, also over the same store. ``ttl`` is LangGraph's
    config: an item whose lifetime has ended is not returned; `sweep_ttl` deletes it. A
    query finds items by words; those that contain most of its words come first.
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
        if index is not None:
            raise Unsupported(
                "vector search is not supported; leave index= out, and queries find"
                " items by the words in them"
            )
        self.ttl_config = ttl
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
        return self._runner.run(_memory.batch, self._types, ops)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await self._runner.arun(_memory.batch, self._types, ops)

    def sweep_ttl(self) -> int:
        """Delete the items whose lifetime has ended; returns their number."""
        return self._runner.run(_memory.sweep)

    async def asweep_ttl(self) -> int:
        return await self._runner.arun(_memory.sweep)
