"""Starts operations; no other module does.

An operation is a coroutine function whose first parameter is the `Context`. `Runner`
finishes it before it returns; `AsyncRunner` awaits it, in a thread or in the event loop
as the backend needs. Both are called alike::

    runner.run(load.load, "chat", ref)            # anything
    runner.save(moves.rewind, "chat", ref)        # what changes one thread

The second parameter of an operation for `save` is the thread that it changes: its name,
or a value that has it as ``thread``.

Adapters and tools run their own operations through ``store.runner``.

`ObservedRunner` and `ObservedAsyncRunner` show every operation to an observer first.
Stores without one have the plain classes, and do not pay for it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from time import monotonic
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar

from holdfast._api import worker
from holdfast._api.wrong_api import OfThisProcess
from holdfast._engine.context import Context, Observation, Observer
from holdfast._engine.scopes import scoped
from holdfast._port import run
from holdfast._values import os_errors
from holdfast._values.arguments import kind_of
from holdfast._values.limits import no_memory
from holdfast._values.records import Page
from holdfast.errors import Unstorable

Threads: TypeAlias = "worker.Worker | worker.LoopThreads | worker.LentThreads"

POLL_SECONDS = 0.02


class OfThread(Protocol):
    """A value that belongs to a thread."""

    @property
    def thread(self) -> str:
        """The thread's name."""
        ...


P = ParamSpec("P")
T = TypeVar("T")
Named = TypeVar("Named", bound=str | OfThread)
# Starts a coroutine; its first parameter is the context.
Operation: TypeAlias = Callable[Concatenate[Context, P], Coroutine[Any, Any, T]]
# An operation that takes a cursor, a limit and for how many seconds it may wait.
Polled: TypeAlias = Operation[[int, int, float], Page[T]]


def scope_of(context: Context, name: str, *, is_borrowed: bool = True) -> Context:
    """A scope of an open store; closing it leaves one that ``is_borrowed`` open."""
    return scoped.scoped(context, name, is_borrowed=is_borrowed, timer=monotonic)


class Runner(OfThisProcess):
    """Runs the operations of a store in the calling thread, over a blocking backend."""

    is_closed = False

    def __init__(self, context: Context) -> None:
        self.context = context

    def run(
        self, operation: Operation[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """The result of an operation."""
        # Written out and not a call of the port's `run`: each save would pay for it.
        coroutine = operation(self.context, *args, **kwargs)
        try:
            coroutine.send(None)
        except StopIteration as finished:
            result: T = finished.value
            return result
        except OSError as error:
            if error.errno in os_errors.NO_ROOM:
                raise os_errors.no_room(error) from error
            raise
        except MemoryError as error:
            raise no_memory() from error
        coroutine.close()
        raise RuntimeError("an operation suspended: its backend is not a blocking one")

    # A blocking backend commits for each operation by itself.
    save = run

    def close(self) -> None:
        """Forget what is cached and close the backend."""
        self.is_closed = True
        self.context.cache.clear()
        run(self.context.backend.close())

    def for_sync(self) -> Runner:
        """The runner for sync callers of the same store."""
        return self

    def for_async(self) -> AsyncRunner:
        """A runner for async callers of the same store."""
        return _new_async_runner(self.context, worker.LoopThreads())

    def without_threads(self) -> AsyncRunner:
        """A runner for coroutines that never suspend, over the blocking backend."""
        return _new_async_runner(self.context)


class AsyncRunner(OfThisProcess):
    """Runs the operations of a store for async callers.

    ``threads`` are those in which a blocking backend works. Without any, operations are
    awaited where they are called: over a backend that is awaited itself, or within a
    coroutine that never suspends because the backend is a blocking one.
    """

    is_closed = False

    def __init__(self, context: Context, threads: Threads | None = None) -> None:
        self.context = context
        self._threads = threads
        self._saving = threads.saving(context) if threads else context

    @property
    def never_suspends(self) -> bool:
        """True if operations must not suspend, because a sync caller waits for them."""
        return self._threads is None and self.context.backend.blocking

    async def run(
        self, operation: Operation[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """The result of an operation."""
        coroutine = operation(self.context, *args, **kwargs)
        with os_errors.needing_room():
            if self._threads is None:
                return await coroutine
            return await self._threads.run(coroutine)

    async def save(
        self,
        operation: Operation[Concatenate[Named, P], T],
        thread: Named,
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """The result of an operation that changes one thread.

        Saves of many tasks are committed together; those to one thread in order.
        """
        coroutine = operation(self._saving, thread, *args, **kwargs)
        with os_errors.needing_room():
            if self._threads is None:
                return await coroutine
            lane = thread if isinstance(thread, str) else thread.thread
            return await self._threads.save(coroutine, lane)

    async def poll(
        self, operation: Polled[T], after: int, limit: int, timeout: float
    ) -> Page[T]:
        """The page of an operation that waits while there is nothing to return."""
        if self._threads is None:
            return await operation(self.context, after, limit, timeout)
        import asyncio  # noqa: PLC0415 - the sync API does not need it

        # Wait here and not in a thread: watchers must not use up the threads.
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        while True:
            page = await self._threads.run(operation(self.context, after, limit, 0.0))
            remaining = deadline - loop.time()
            if page or remaining <= 0:
                return page
            # In a scope, the cursor moves past the changes of others.
            after = after if page.cursor is None else page.cursor
            await asyncio.sleep(min(POLL_SECONDS, remaining))

    async def close(self) -> None:
        """Finish the running operations, then release everything."""
        if self._threads is None:
            # It may refuse: then it is still in use in another event loop.
            await self.context.backend.close()
        self.is_closed = True
        self.context.cache.clear()
        if self._threads is None:
            return
        import asyncio  # noqa: PLC0415 - the sync API does not need it

        await asyncio.to_thread(self._threads.close)
        await asyncio.to_thread(run, self.context.backend.close())

    def scoped(self, scope: str) -> AsyncRunner:
        """A runner for a scope of the store, in the same threads."""
        context, threads = scope_of(self.context, scope), self._threads
        if threads is None:
            return _new_async_runner(context)
        saving = scoped.scoped_alike(context, self._saving)
        return _new_async_runner(context, worker.LentThreads(threads, saving))

    def for_sync(self) -> Runner | None:
        """A runner for sync callers of the store, ``None`` if it must be awaited."""
        return new_runner(self.context) if self.context.backend.blocking else None

    def for_async(self) -> AsyncRunner:
        """The runner for async callers of the same store."""
        return self


class ObservedRunner(Runner):
    """Like `Runner`; the context has an observer, which sees every operation."""

    def run(
        self, operation: Operation[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        with _observer(self.context).observe(operation, args) as seen:
            result = super().run(_within(seen, operation), *args, **kwargs)
            seen.finish(result)
            return result

    save = run


class ObservedAsyncRunner(AsyncRunner):
    """Like `AsyncRunner`; the context has an observer, which sees every operation."""

    async def run(
        self, operation: Operation[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        with _observer(self.context).observe(operation, args) as seen:
            result = await super().run(_within(seen, operation), *args, **kwargs)
            seen.finish(result)
            return result

    async def save(
        self,
        operation: Operation[Concatenate[Named, P], T],
        thread: Named,
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        with _observer(self.context).observe(operation, (thread, *args)) as seen:
            within = _within(seen, operation)
            result = await super().save(within, thread, *args, **kwargs)
            seen.finish(result)
            return result

    async def poll(
        self, operation: Polled[T], after: int, limit: int, timeout: float
    ) -> Page[T]:
        with _observer(self.context).observe(operation, (after, limit)) as seen:
            within = _within(seen, operation)
            return await super().poll(within, after, limit, timeout)


def _observer(context: Context) -> Observer:
    assert context.observer is not None
    return context.observer


def _within(seen: Observation, operation: Operation[P, T]) -> Operation[P, T]:
    """An operation that runs in the context of its observation."""

    def start(
        context: Context, /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, T]:
        return operation(seen.context(context), *args, **kwargs)

    return start


def check_runner(given: object, kind: type, instead: str) -> None:
    """Refuse what is no runner: callers might make a handle of a store themselves."""
    if not isinstance(given, kind):
        text = f"must be the runner of a store, not {kind_of(given)}; write {instead}"
        raise Unstorable("runner", text)


def _check_context(context: object) -> None:
    if not isinstance(context, Context):
        text = f"must not be {kind_of(context)}; open a store with holdfast.open(...)"
        raise Unstorable("context", text)


def new_runner(context: Context) -> Runner:
    """The runner of a store that was opened for sync callers."""
    _check_context(context)
    return Runner(context) if context.observer is None else ObservedRunner(context)


def new_async_runner(context: Context) -> AsyncRunner:
    """The runner of a store that was opened for async callers."""
    _check_context(context)
    backend = context.backend
    return _new_async_runner(
        context, worker.Worker(backend) if backend.blocking else None
    )


def _new_async_runner(context: Context, threads: Threads | None = None) -> AsyncRunner:
    made = AsyncRunner if context.observer is None else ObservedAsyncRunner
    return made(context, threads)
