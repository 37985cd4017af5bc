"""The base of all services: the store that they use."""

from __future__ import annotations

from typing import Self, Unpack

from holdfast.operations import OpenOptions
from holdfast.operations.stores import StoreOrAddress, UsedStore


class StoreUser:
    """Uses a store that it was given, or opens one and closes it again.

    ``store`` is a `holdfast.Store`, a `holdfast.AsyncStore`, or an address, which is
    opened with the options of `holdfast.open` and closed by `close`.
    """

    def __init__(self, store: StoreOrAddress, **options: Unpack[OpenOptions]) -> None:
        self._used = UsedStore(store, **options)
        self._store = self._used.awaited

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the store if it was opened here."""
        await self._used.close()
