"""Stores that cannot be shown in full: without their key, or removed meanwhile."""

from __future__ import annotations

import asyncio
import os

from holdfast._api.options import open_context
from holdfast._api.store import AsyncStore
from holdfast._port import run
from holdfast.errors import NotFound, Unsupported

KEY_NEEDED = "key_needed"


async def open_without_key(address: str, *, busy_timeout: float) -> AsyncStore:
    """An encrypted store of which nothing but its sizes can be read."""

    def opened() -> AsyncStore:
        context = open_context(
            address, {"read_only": True, "busy_timeout": busy_timeout}
        )
        run(context.backend.ready())
        return AsyncStore(context)

    return await asyncio.to_thread(opened)


def without_key() -> Unsupported:
    """The error for everything that a key is needed for."""
    text = (
        "the store is encrypted, and only its sizes can be shown without its key; set"
        " HOLDFAST_KEY_FILE or HOLDFAST_PASSPHRASE and start the viewer again"
    )
    return Unsupported(text, code=KEY_NEEDED)


class StoreFile:
    """The file or folder of a store, if it has one on this machine.

    An open file can be read after it was removed; then the viewer would show a store
    that is not there.
    """

    def __init__(self, address: str) -> None:
        scheme, _, rest = address.partition(":")
        path = os.path.expanduser(rest if scheme in {"sqlite", "dir"} else address)
        self._path = os.path.abspath(path) if os.path.exists(path) else None

    def check(self) -> None:
        """Raise if it was there and is not there any more."""
        if self._path is not None and not os.path.exists(self._path):
            text = f"the store {self._path} was removed; start the viewer again"
            raise NotFound(text, code="store_removed")
