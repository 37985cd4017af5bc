"""From an address and options to what the operations work with."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from typing import Literal, TypedDict

from holdfast._cache import Cache
from holdfast._clock import now, uuid7
from holdfast._operations.context import Context, Housekeeping
from holdfast._packing import Packer
from holdfast._url import open_backend
from holdfast.errors import Conflict, Unstorable
from holdfast.retention import Retention

CACHE_SIZE = 64 << 20


class Options(TypedDict, total=False):
    """How to open a store; `holdfast.open` says what each means."""

    durability: Literal["full", "normal"]
    compress: bool
    read_only: bool
    cache_size: int
    busy_timeout: float
    retention: Retention | None
    prune_every: timedelta
    clock: Callable[[], int]
    new_id: Callable[[], str]


def open_context(url: str | os.PathLike[str], options: Options) -> Context:
    """Open the backend an address names."""
    _check(options)
    backend = open_backend(
        url,
        read_only=options.get("read_only", False),
        durability=options.get("durability", "full"),
        busy_timeout=options.get("busy_timeout", 5.0),
        compress=options.get("compress", False),
    )
    policy = options.get("retention")
    every = options.get("prune_every", timedelta(hours=1))
    return Context(
        backend=backend,
        cache=Cache(options.get("cache_size", CACHE_SIZE)),
        packer=Packer(backend, compress=options.get("compress", False)),
        clock=options.get("clock", now),
        new_id=options.get("new_id", uuid7),
        housekeeping=Housekeeping(policy, every // timedelta(microseconds=1))
        if policy
        else None,
    )


def open_new(path: str) -> Context:
    """Open a store that must not be there yet."""
    if os.path.exists(path):
        text = f"{path} exists; choose the name of a new file"
        raise Conflict(text, code="file_exists")
    return open_context(path, {})


def _check(options: Options) -> None:
    unknown = options.keys() - Options.__annotations__.keys()
    if unknown:
        raise Unstorable("open", f"does not know the option {min(unknown)!r}")
    durability = options.get("durability", "full")
    if durability not in {"full", "normal"}:
        raise Unstorable("durability", f"is 'full' or 'normal', not {durability!r}")
