"""Opening a store for the sync or the async API."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Generator
from typing import TYPE_CHECKING, Any, Unpack

from holdfast._api.options import (
    OpenOptions,
    make_ready,
    open_context,
    open_damaged,
)
from holdfast._api.store import AsyncStore, Store
from holdfast._api.wrong_api import AsyncOnly
from holdfast._engine.context import Context
from holdfast._port import run
from holdfast._values.caller_key import CallerKey

if TYPE_CHECKING:  # modules that `holdfast log` need not load
    from holdfast._engine.upkeep.salvage import Salvaged


def open(url: str | os.PathLike[str], **options: Unpack[OpenOptions]) -> Store:  # noqa: A001
    """Open a store, and make it if it does not exist.

    ``url`` is a path, ``sqlite:path``, ``:memory:``, ``dir:path`` (a folder of text)
    or ``postgresql://...`` (extra ``postgres``). Options:

    - ``durability``: with ``"full"``, the default, an acknowledged save survives a
      power cut, with ``"normal"`` only a crash of the process.
    - ``compress=True`` packs what is saved from now on (extra ``zstd``).
    - ``read_only=True`` refuses every change and makes no file.
    - ``make_folders=True`` makes the folders in which the store is, too; without it,
      they must exist.
    - ``cache_size``: bytes of memory for the last states, 64 MB by default.
    - ``busy_timeout``: seconds to wait for a lock before `Busy` is raised, 5.
    - ``accept_loss=True`` opens a file whose log was damaged after a crash, without the
      changes that are lost; without it `Corrupt` tells how many.
    - ``retention``: a policy applied to the whole store after the first save, and then
      after a save at most once in ``prune_every`` (an hour, ``timedelta(0)`` for every
      save); until then there can be more than it keeps.
    - ``telemetry``: whether operations make spans and metrics of OpenTelemetry (extra
      ``otel``), or a `holdfast.telemetry.Telemetry` with providers for them. By default
      they do if the program has set a provider of tracers.
    - ``key``: encrypts everything (extra ``keys``). 32 bytes, a passphrase, the path
      of a key file as a `pathlib.Path`, or an object with ``wrap`` and ``unwrap``, such
      as a KMS. A store is encrypted from its beginning on or not at all.
    - ``seal``: what `Store.seal` gave. All records are read first; a store that no
      longer holds what was sealed is `Corrupt`.
    - ``scope``: opens only this part of the store, as `Store.scope` does.
    - ``clock`` gives microseconds UTC, ``new_id`` ids of checkpoints.
    - ``schema``: where the tables are in PostgreSQL, ``"holdfast"``; ``pool``: the
      least and the most connections, ``(1, 10)``; ``partitions``: into how many parts
      new tables are divided; ``pgbouncer=True``: a PgBouncer shares connections by
      transaction (without the option it is detected).
    """
    return _ready(open_context(url, options), options)


def open_async(url: str | os.PathLike[str], **options: Unpack[OpenOptions]) -> Opening:
    """Like `open`, for ``async with`` or ``await``; gives an `AsyncStore`."""
    return Opening(lambda: open_context(url, options, native=True), options)


def salvage(
    url: str | os.PathLike[str], to: str, *, key: CallerKey | None = None
) -> Salvaged:
    """Copy everything that can still be read of a store into a new one.

    As `Store.salvage`, and also for a file that is too damaged to be opened. The copy
    of an encrypted store has the same ``key``.
    """
    with _ready(open_damaged(url, key), {}) as store:
        return store.salvage(to)


def _ready(context: Context, options: OpenOptions) -> Store:
    return Store(run(_prepared(context, options)))


def _prepared(context: Context, options: OpenOptions) -> Coroutine[Any, Any, Context]:
    return make_ready(context, options.get("seal"), options.get("scope"))


class Opening(AsyncOnly):
    """An `AsyncStore` that is not open yet; opening it is done in a thread."""

    def __init__(
        self, make: Callable[[], Context], options: OpenOptions | None = None
    ) -> None:
        self._make = make
        self._options = options or {}
        self._store: AsyncStore | None = None

    def __await__(self) -> Generator[Any, None, AsyncStore]:
        return self._open().__await__()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> None:
            """Say that it has to be opened, instead of what it does not have."""
            if name.startswith("_"):
                raise AttributeError(f"'Opening' object has no attribute {name!r}")
            raise AttributeError(
                f"the store is not open yet, so it has no {name!r}; write `async with"
                " holdfast.open_async(...) as store:`, or `store = await"
                " holdfast.open_async(...)`"
            )

    async def __aenter__(self) -> AsyncStore:
        self._store = await self._open()
        return self._store

    async def __aexit__(self, *_: object) -> None:
        assert self._store is not None
        await self._store.close()

    async def _open(self) -> AsyncStore:
        import asyncio  # noqa: PLC0415 - the sync API does not need it

        context = await asyncio.to_thread(self._make)
        preparing = _prepared(context, self._options)
        if context.backend.blocking:
            return AsyncStore(await asyncio.to_thread(run, preparing))
        return AsyncStore(await preparing)
