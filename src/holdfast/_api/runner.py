"""Threads that run the operations of a blocking backend for the async door.

Operations that save go to one thread. It runs each up to its commit, commits for all
that have got there together, and goes on with each: so a thousand tasks that save cost
one thread and one fsync for many. All others run in a small pool.
"""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from msgspec.structs import replace

from holdfast._engine.context import Context
from holdfast._port import Backend, BlockingBackend, Outcome, Receipt, Write, run
from holdfast.errors import Closed

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")

MOST_READERS = 8
MOST_TOGETHER = 256


class Commit:
    """Suspends an operation until the writer has committed for it."""

    def __init__(self, writes: Sequence[Write]) -> None:
        self.writes = writes

    def __await__(self) -> Generator[Commit, list[Receipt], list[Receipt]]:
        return (yield self)


class Deferring:
    """A backend whose commits are left to the writer."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    async def commit(self, writes: Sequence[Write]) -> list[Receipt]:
        """Suspend; the writer goes on with the receipts, or throws the error."""
        return await Commit(writes)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)


class Job:
    """An operation on its way through the writer."""

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
        self.commit: Commit | None = None
        self.result: object = None
        self.error: BaseException | None = None

    def begin(self) -> bool:
        """Run up to the first commit; False if it is over already."""
        if self.future.cancelled():
            self.operation.close()
            return False
        return self._advance(lambda: self.operation.send(None))

    def resume(self, outcome: Outcome | Exception) -> bool:
        """Go on behind a commit; False if it is over."""
        if isinstance(outcome, Exception):
            return self._advance(lambda: self.operation.throw(outcome))
        return self._advance(lambda: self.operation.send(outcome))

    def _advance(self, step: Callable[[], Any]) -> bool:
        try:
            self.commit = cast("Commit", step())
        except StopIteration as finished:
            self.result = finished.value
            return False
        except BaseException as error:  # noqa: BLE001 - it belongs to the caller
            self.error = error
            return False
        return True

    def deliver(self) -> None:
        """Tell the caller, in its own loop."""
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


class Worker:
    """The threads of one store.

    Cancelling a caller does not stop an operation that has begun: it is finished or
    fails as a whole, in its thread.
    """

    def __init__(self) -> None:
        self._backend: BlockingBackend | None = None
        self._closed = False
        self._hire()

    def _hire(self) -> None:
        # Imported here, and asyncio below: the blocking door needs neither.
        import threading  # noqa: PLC0415
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415
        from queue import SimpleQueue  # noqa: PLC0415

        self._pool = ThreadPoolExecutor(MOST_READERS, "holdfast")
        # A daemon: a program that forgets to close its store ends all the same.
        self._writer = threading.Thread(
            target=self._write, name="holdfast-writer", daemon=True
        )
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._lanes: dict[str, deque[Job]] = {}
        self._process = os.getpid()

    def start(self, backend: BlockingBackend) -> None:
        """Begin to write to a backend."""
        self._backend = backend
        self._writer.start()

    def _be_ready(self) -> None:
        """Refuse when closed; in a forked child, which has no threads, begin anew."""
        if self._closed:
            raise Closed
        if self._process != os.getpid():
            self._hire()
            if self._backend is not None:
                self._writer.start()

    async def run(self, operation: Coroutine[Any, Any, T]) -> T:
        """The result of an operation, in a thread of the pool."""
        try:
            return await self.call(lambda: run(operation))
        finally:
            # Cancelled while waiting for a thread, it never ran and would warn of it.
            # One that is running in its thread refuses, and goes on.
            with contextlib.suppress(ValueError):
                operation.close()

    async def save(self, operation: Coroutine[Any, Any, T], lane: str) -> T:
        """The result of an operation whose commits are deferred to the writer.

        Operations of one lane, the thread they change, run one after the other: at
        once, all but one would find that the head has moved.
        """
        import asyncio  # noqa: PLC0415

        try:
            self._be_ready()
        except Closed:
            operation.close()
            raise
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._jobs.put(Job(operation, future, lane))
        return await future

    async def call(self, work: Callable[[], T]) -> T:
        """The result of a blocking call."""
        import asyncio  # noqa: PLC0415

        self._be_ready()
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def close(self) -> None:
        """Wait for what is running and let the threads go."""
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
            over: list[Job] = []
            waiting += self._begin([job for job in arrived if self._admit(job)], over)
            waiting = self._commit(waiting, over)
            _deliver(over)

    def _admit(self, job: Job) -> bool:
        """Whether a job's lane is free; it takes it, or queues for it."""
        if job.lane in self._lanes:
            self._lanes[job.lane].append(job)
            return False
        self._lanes[job.lane] = deque()
        return True

    def _begin(self, jobs: list[Job], over: list[Job]) -> list[Job]:
        """Run jobs up to their commits; one that is over lets the next of its lane."""
        begun: list[Job] = []
        while jobs:
            following: list[Job] = []
            for job in jobs:
                if job.begin():
                    begun.append(job)
                else:
                    over.append(job)
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

    def _commit(self, waiting: list[Job], over: list[Job]) -> list[Job]:
        """Commit for all who wait for it; those that want to commit again go on."""
        if not waiting:
            return []
        assert self._backend is not None
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
                over.append(job)
                following += self._next_of(job.lane)
        return again + self._begin(following, over)


def _deliver(jobs: list[Job]) -> None:
    """Tell the callers, with one call into each of their loops."""
    loops = {job.future.get_loop(): list[Job]() for job in jobs}
    for job in jobs:
        loops[job.future.get_loop()].append(job)
    for loop, theirs in loops.items():
        # A loop that was closed meanwhile has nobody left who would listen.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_deliver_all, theirs)


def _deliver_all(jobs: list[Job]) -> None:
    for job in jobs:
        job.deliver()


class Passage:
    """How the async door runs operations: in threads, or in the loop itself."""

    def __init__(self, context: Context, worker: Worker) -> None:
        self.context = context
        self.saving = context
        self.worker = worker
        if context.backend.blocking:
            # What `blocking` promises, and no checker can follow.
            worker.start(cast("BlockingBackend", context.backend))
            deferring = cast("Backend", Deferring(context.backend))
            self.saving = replace(context, backend=deferring)

    async def run(self, operation: Coroutine[Any, Any, T]) -> T:
        """The result of an operation made with ``context``."""
        if self.context.backend.blocking:
            return await self.worker.run(operation)
        return await operation

    async def save(self, operation: Coroutine[Any, Any, T], lane: str) -> T:
        """The result of an operation made with ``saving`` that changes a thread."""
        if self.context.backend.blocking:
            return await self.worker.save(operation, lane)
        return await operation

    async def close(self) -> None:
        """Finish what was begun, then release everything."""
        import asyncio  # noqa: PLC0415

        self.context.cache.clear()
        await asyncio.to_thread(self.worker.close)
        if self.context.backend.blocking:
            await asyncio.to_thread(run, self.context.backend.close())
        else:
            await self.context.backend.close()
