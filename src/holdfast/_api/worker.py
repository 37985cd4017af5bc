"""Threads that run the operations of a blocking backend for async callers.

Operations that save go to one writer thread. It runs each of them up to its commit,
commits for all of them together, and then resumes each: a thousand tasks that save
need one thread, and many of them share one fsync. Other operations run in a small pool.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar, cast

from msgspec.structs import replace

from holdfast._engine.context import Context
from holdfast._port import Backend, BlockingBackend, Outcome, Receipt, Write, run
from holdfast._port.layer import Layer
from holdfast.errors import Closed

if TYPE_CHECKING:  # the sync API does not need it
    import asyncio

T = TypeVar("T")

MOST_READERS = 8
MOST_TOGETHER = 256


class DeferredCommit:
    """Suspends an operation until the writer thread has committed for it."""

    def __init__(self, writes: Sequence[Write]) -> None:
        self.writes = writes

    def __await__(self) -> Generator[DeferredCommit, list[Receipt], list[Receipt]]:
        return (yield self)


class DeferringBackend(Layer):
    """A backend whose commits are left to the writer thread."""

    async def commit(self, writes: Sequence[Write]) -> list[Receipt]:
        """Suspend; the writer resumes with the receipts, or throws the error."""
        return await DeferredCommit(writes)

    def commit_each(self, batches: Sequence[Sequence[Write]]) -> Sequence[Outcome]:
        """The commits that were deferred."""
        return super().commit_each(batches)


class Job:
    """An operation that the writer thread runs."""

    __slots__ = ("commit", "error", "future", "lane", "operation", "result")

    def __init__(
        self,
        operation: Coroutine[Any, Any, Any],
        future: asyncio.Future[Any],
        lane: str,
    ) -> None:
        self.operation = operation
        self.future = future
        self.lane = lane
        self.commit: DeferredCommit | None = None
        self.result: object = None
        self.error: BaseException | None = None

    def begin(self) -> bool:
        """Run up to the first commit; False if the operation has ended."""
        if self.future.cancelled():
            self.operation.close()
            return False
        return self._advance(lambda: self.operation.send(None))

    def resume(self, outcome: Outcome | Exception) -> bool:
        """Continue after a commit; False if the operation has ended."""
        if isinstance(outcome, Exception):
            return self._advance(lambda: self.operation.throw(outcome))
        return self._advance(lambda: self.operation.send(outcome))

    def _advance(self, step: Callable[[], Any]) -> bool:
        try:
            # A deferring backend suspends in nothing but its commits.
            self.commit = cast("DeferredCommit", step())
        except StopIteration as finished:
            self.result = finished.value
            return False
        except BaseException as error:  # noqa: BLE001 - it belongs to the caller
            self.error = error
            return False
        return True

    def deliver(self) -> None:
        """Set the caller's future; runs in the caller's event loop."""
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


class Worker:
    """The threads of one store over a blocking backend.

    Cancelling a caller does not stop an operation that has begun: it succeeds or fails
    as a whole, in its thread.
    """

    def __init__(self, backend: Backend) -> None:
        # `backend.blocking` promises `commit_each`; type checkers cannot know that.
        self._backend = cast("BlockingBackend", backend)
        self._closed = False
        self._start_threads()

    def _start_threads(self) -> None:
        self._pool = ThreadPoolExecutor(MOST_READERS, "holdfast")
        # A daemon, so that a program that does not close its store can end.
        self._writer = threading.Thread(
            target=self._write, name="holdfast-writer", daemon=True
        )
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._lanes: dict[str, deque[Job]] = {}
        self._process = os.getpid()
        self._writer.start()

    def _check_threads(self) -> None:
        """Refuse after closing; start new threads in a forked child, which has none."""
        if self._closed:
            raise Closed
        if self._process != os.getpid():
            self._start_threads()

    def saving(self, context: Context) -> Context:
        """The context for operations given to `save`."""
        deferring = DeferringBackend(context.backend)
        return replace(context, backend=deferring)

    async def run(self, operation: Coroutine[Any, Any, T]) -> T:
        """The result of an operation, run in a thread of the pool."""
        import asyncio  # noqa: PLC0415 - the sync API does not need it

        try:
            self._check_threads()
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._pool, run, operation)
        except BaseException:
            close_unstarted(operation)
            raise

    async def save(self, operation: Coroutine[Any, Any, T], lane: str) -> T:
        """The result of an operation whose commits the writer thread makes.

        ``lane`` is the thread that it changes. Operations of one lane run one after the
        other: side by side, all but one of them would find that the head has moved.
        """
        import asyncio  # noqa: PLC0415

        try:
            self._check_threads()
        except Closed:
            operation.close()
            raise
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._jobs.put(Job(operation, future, lane))
        return await future

    def close(self) -> None:
        """Wait for the running operations, then end the threads."""
        self._closed = True
        self._jobs.put(None)
        if self._writer.is_alive():
            self._writer.join()
        self._pool.shutdown(wait=True)

    def _write(self) -> None:
        waiting: list[Job] = []
        closing = False
        while not closing or waiting:
            arrived, closing = self._arrived(closing, wait=not waiting)
            ended: list[Job] = []
            waiting += self._begin([job for job in arrived if self._admit(job)], ended)
            waiting = self._commit(waiting, ended)
            _deliver(ended)

    def _admit(self, job: Job) -> bool:
        """Take the job's lane if it is free, or queue the job for it."""
        if job.lane in self._lanes:
            self._lanes[job.lane].append(job)
            return False
        self._lanes[job.lane] = deque()
        return True

    def _begin(self, jobs: list[Job], ended: list[Job]) -> list[Job]:
        """Run jobs up to their commits; the end of one begins the next of its lane."""
        begun: list[Job] = []
        while jobs:
            following: list[Job] = []
            for job in jobs:
                if job.begin():
                    begun.append(job)
                else:
                    ended.append(job)
                    following += self._next_of(job.lane)
            jobs = following
        return begun

    def _next_of(self, lane: str) -> list[Job]:
        if self._lanes[lane]:
            return [self._lanes[lane].popleft()]
        del self._lanes[lane]
        return []

    def _arrived(self, closing: bool, *, wait: bool) -> tuple[list[Job], bool]:
        """The jobs that came in, waiting for one if there is nothing else to do."""
        arrived: list[Job] = []
        while not closing and len(arrived) < MOST_TOGETHER:
            if self._jobs.empty() and (arrived or not wait):
                break
            job = self._jobs.get()
            if job is None:
                closing = True
            else:
                arrived.append(job)
        return arrived, closing

    def _commit(self, waiting: list[Job], ended: list[Job]) -> list[Job]:
        """Commit for all waiting jobs; gives those that wait for another commit."""
        if not waiting:
            return []
        batches = [job.commit.writes for job in waiting if job.commit]
        outcomes: Sequence[Outcome | Exception]
        try:
            outcomes = self._backend.commit_each(batches)
        except Exception as error:  # noqa: BLE001 - it belongs to the callers
            outcomes = [error] * len(batches)
        again: list[Job] = []
        following: list[Job] = []
        for job, outcome in zip(waiting, outcomes, strict=True):
            if job.resume(outcome):
                again.append(job)
            else:
                ended.append(job)
                following += self._next_of(job.lane)
        return again + self._begin(following, ended)


class LoopThreads:
    """The threads of the event loop, for async callers of a store opened with `open`.

    They are asyncio's own, so there is nothing to close.
    """

    def saving(self, context: Context) -> Context:
        """The context for operations given to `save`: each commits for itself."""
        return context

    async def run(self, operation: Coroutine[Any, Any, T]) -> T:
        """The result of an operation, run in a thread."""
        import asyncio  # noqa: PLC0415

        try:
            return await asyncio.to_thread(run, operation)
        except BaseException:
            close_unstarted(operation)
            raise

    async def save(self, operation: Coroutine[Any, Any, T], lane: str) -> T:
        """Like `run`."""
        del lane
        return await self.run(operation)

    def close(self) -> None:
        """Do nothing."""


class LentThreads:
    """The threads of a store, for one of its scopes: they end with the store.

    ``saving`` is the context of the scope for operations given to `save`.
    """

    def __init__(
        self, threads: Worker | LoopThreads | LentThreads, saving: Context
    ) -> None:
        self._threads, self._saving = threads, saving

    def saving(self, context: Context) -> Context:
        """The context for operations given to `save`."""
        del context
        return self._saving

    async def run(self, operation: Coroutine[Any, Any, T]) -> T:
        """Run it on the store's threads."""
        return await self._threads.run(operation)

    async def save(self, operation: Coroutine[Any, Any, T], lane: str) -> T:
        """Run it on the store's threads."""
        return await self._threads.save(operation, lane)

    def close(self) -> None:
        """Do nothing."""


def close_unstarted(operation: Coroutine[Any, Any, Any]) -> None:
    """Close an operation whose caller was cancelled before a thread was free for it.

    Without this, Python warns that it was never awaited. An operation that is running
    in its thread refuses to be closed, and goes on.
    """
    with contextlib.suppress(ValueError):
        operation.close()


def _deliver(jobs: list[Job]) -> None:
    """Give the results to the callers, with one call into each of their loops."""
    loops = {job.future.get_loop(): list[Job]() for job in jobs}
    for job in jobs:
        loops[job.future.get_loop()].append(job)
    for loop, theirs in loops.items():
        # A loop that was closed in the meantime has no caller left.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_deliver_all, theirs)


def _deliver_all(jobs: list[Job]) -> None:
    for job in jobs:
        job.deliver()
