"""Opening a store through either door."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from datetime import timedelta
from types import TracebackType
from typing import Any, Literal, TypedDict, Unpack

from holdfast._cache import Cache
from holdfast._clock import now, uuid7
from holdfast._operations.context import Context, Housekeeping
from holdfast._packing import Packer
from holdfast._store import AsyncStore, Store
from holdfast._url import open_backend
from holdfast._worker import Worker
from holdfast.errors import Unstorable
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


def open(url: str | os.PathLike[str], **options: Unpack[Options]) -> Store:  # noqa: A001
    """Open a store, and make it if it is not there.

    ``url`` is a path, ``sqlite:path`` or ``:memory:``. Options:

    - ``durability``: with ``"full"``, the default, an acknowledged save survives a
      power cut, with ``"normal"`` only a crash of the process.
    - ``compress=True`` packs what is saved from now on (extra ``zstd``).
    - ``read_only=True`` refuses every change and makes no file.
    - ``cache_size``: bytes of memory for the last states, 64 MB by default.
    - ``busy_timeout``: seconds to wait for a lock before `Busy` is raised, 5.
    - ``retention``: a policy applied after saves, at most once in ``prune_every``
      (an hour).
    - ``clock`` gives microseconds UTC, ``new_id`` ids of checkpoints.
    """
    return Store(_context(url, options))


def open_async(url: str | os.PathLike[str], **options: Unpack[Options]) -> Opening:
    """As `open`, for ``async with`` or ``await``; gives an `AsyncStore`."""
    return Opening(lambda: _context(url, options))


class Opening:
    """A store about to be opened; the work is done in a thread."""

    def __init__(self, make: Callable[[], Context]) -> None:
        self._make = make
        self._store: AsyncStore | None = None

    def __await__(self) -> Generator[Any, None, AsyncStore]:
        return self._open().__await__()

    async def __aenter__(self) -> AsyncStore:
        self._store = await self._open()
        return self._store

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._store is not None
        await self._store.close()

    async def _open(self) -> AsyncStore:
        worker = Worker()
        return AsyncStore(await worker.call(self._make), worker)


def _context(url: str | os.PathLike[str], options: Options) -> Context:
    _check(options)
    backend = open_backend(
        url,
        read_only=options.get("read_only", False),
        durability=options.get("durability", "full"),
        busy_timeout=options.get("busy_timeout", 5.0),
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


def _check(options: Options) -> None:
    unknown = options.keys() - Options.__annotations__.keys()
    if unknown:
        raise Unstorable("open", f"does not know the option {min(unknown)!r}")
    durability = options.get("durability", "full")
    if durability not in {"full", "normal"}:
        raise Unstorable("durability", f"is 'full' or 'normal', not {durability!r}")
