"""Stores of every kind, opened by the sync or the async API and used as a sync one."""

from __future__ import annotations

from typing import Any

import holdfast
from holdfast.testing import blocking
from inner.engine import Packing


def opened(door: str, url: str, **options: Any) -> Any:
    """A store opened by the sync API ("blocking") or by the async API ("awaited")."""
    if door == "awaited":
        return blocking(holdfast.open_async(url, **options))
    return holdfast.open(url, **options)


def backend_of(store: Any) -> Any:
    """What keeps a store, for tests that look behind its API or damage it."""
    packing = store.runner.context.backend
    assert isinstance(packing, Packing)
    return packing.backend


def open_file(path, **options):
    return holdfast.open(path, **options)


def open_awaited(path, **options):
    return blocking(holdfast.open_async(path, **options))


def open_compressed(path, **options):
    return holdfast.open(path, compress=True, **options)


def open_compressed_awaited(path, **options):
    return blocking(holdfast.open_async(path, compress=True, **options))


def open_directory(path, **options):
    return holdfast.open(f"dir:{path}", **options)


def open_directory_awaited(path, **options):
    return blocking(holdfast.open_async(f"dir:{path}", **options))


def open_memory(path, **options):
    return holdfast.open(":memory:", **options)
