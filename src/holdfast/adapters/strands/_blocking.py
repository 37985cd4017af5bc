"""The store behind the adapter, a blocking one: Strands uses many event loops."""

from __future__ import annotations

from typing import Unpack

import holdfast
from holdfast import AsyncStore, Store
from holdfast.errors import Unsupported
from holdfast.operations import OpenOptions
from holdfast.operations.stores import StoreOrAddress, given


class BlockingStore:
    """A store that was given, or one that is opened here and closed by `close`."""

    def __init__(self, store: StoreOrAddress, **options: Unpack[OpenOptions]) -> None:
        self._owned: Store | None = None
        if isinstance(store, AsyncStore):
            store = _blocking(store)
        if isinstance(store, Store):
            self.store = given(store, options)
        else:
            self.store = self._owned = holdfast.open(store, **options)

    def close(self) -> None:
        if self._owned is not None:
            self._owned.close()


def _blocking(store: AsyncStore) -> Store:
    runner = store.runner.for_sync()
    if runner is None:
        raise Unsupported(
            "Strands calls from several event loops, and this store belongs to one;"
            " give its address, or a store of holdfast.open()"
        )
    return Store(runner.context)
