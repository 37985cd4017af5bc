"""The async API, driven by blocking calls."""

from __future__ import annotations

import asyncio
import atexit
import inspect
import threading
from collections.abc import Awaitable
from functools import cache
from typing import Any, Self, TypeVar, cast

from holdfast._api.agents import AsyncAgents
from holdfast._api.autosave import AsyncAutoCheckpoints
from holdfast._api.conversations import AsyncConversations
from holdfast._api.documents import AsyncDocuments
from holdfast._api.exploration import AsyncExploration
from holdfast._api.store import AsyncStore, Store
from holdfast._api.streams import AsyncStream
from holdfast._api.thread import AsyncThread
from holdfast._api.transaction import AsyncTransaction
from holdfast.recorder import AsyncRecorder

T = TypeVar("T")


def blocking(opening: Awaitable[AsyncStore]) -> Store:
    """An `AsyncStore`, such as ``open_async(...)`` gives, to be used like a `Store`.

    Every call is awaited on an event loop that runs in a background thread, so that one
    test can check the sync and the async API. Threads and records that the store gives
    are bridged in the same way.
    """
    # It has every method of a Store; a test compares the two.
    return cast("Store", _Bridge(_awaited(opening)))


# The classes whose methods are awaited.
_AWAITED = (
    AsyncAgents,
    AsyncAutoCheckpoints,
    AsyncConversations,
    AsyncDocuments,
    AsyncExploration,
    AsyncRecorder,
    AsyncStore,
    AsyncStream,
    AsyncThread,
    AsyncTransaction,
)


class _Bridge:
    """Passes every call on, and waits for its result."""

    def __init__(self, target: Any) -> None:
        self._target = target

    def __enter__(self) -> Self:
        _awaited(self._target.__aenter__())
        return self

    def __exit__(self, *raised: object) -> None:
        _awaited(self._target.__aexit__(*raised))

    def __str__(self) -> str:
        return str(self._target)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        if not inspect.ismethod(found):
            return finished(found)

        def call(*arguments: Any, **options: Any) -> Any:
            given = [_unbridged(argument) for argument in arguments]
            named = {key: _unbridged(value) for key, value in options.items()}
            return finished(found(*given, **named))

        return call


def _unbridged(argument: Any) -> Any:
    """The argument that the async API takes: the object behind a bridge."""
    return vars(argument)["_target"] if isinstance(argument, _Bridge) else argument


def finished(result: Any) -> Any:
    """The result of a call by either API, waited for if it has to be awaited."""
    value = _awaited(result) if inspect.isawaitable(result) else result
    return _Bridge(value) if isinstance(value, _AWAITED) else value


def _awaited(awaitable: Awaitable[T]) -> T:
    async def finish() -> T:
        return await awaitable

    return asyncio.run_coroutine_threadsafe(finish(), _loop()).result()


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    runner = threading.Thread(target=loop.run_forever, daemon=True, name="bridge")
    runner.start()

    def stop() -> None:
        loop.call_soon_threadsafe(loop.stop)
        runner.join()
        loop.close()

    atexit.register(stop)
    return loop
