"""Saves of many tasks made together: one statement, one transaction, one flush.

A save that finds few others being made is sent at once, alone. Otherwise it waits until
one of those ends, and all that wait are sent as one statement. A save that cannot be
made together, because its head has moved or another transaction holds its thread, is
made alone afterwards.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

from holdfast._port import Receipt, Write
from holdfast._values.records import Checkpoint

# So many statements run before saves wait for one another, and so many saves go into
# one. While the server is busy with two, the next is put together: 16 or 64 tasks then
# make 14 % more saves than with three and 32.
CONCURRENT, LARGEST_BATCH = 2, 24
# A running statement may wait for a lock; the other saves wait no longer than this.
LONGEST_WAIT = 0.02

SaveAll = Callable[[Sequence[Write], float], Awaitable["list[Receipt | NotSaved]"]]


class NotSaved(NamedTuple):
    """A save not made with the others; if ``is_doubtful``, it may have been made."""

    is_doubtful: bool


class WaitingSave(NamedTuple):
    """A save that waits for a batch."""

    write: Write
    deadline: float
    answer: asyncio.Future[Receipt | NotSaved]


class BatchedSavesByLoop:
    """The batched saves of each event loop; those of a closed loop are dropped."""

    def __init__(self, save_all: SaveAll, timeout: float) -> None:
        self._save_all, self._timeout = save_all, timeout
        self._by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, BatchedSaves]
        self._by_loop = WeakKeyDictionary()

    def here(self) -> BatchedSaves:
        """The batched saves of the running event loop."""
        loop = asyncio.get_running_loop()
        found = self._by_loop.get(loop)
        if found is None:
            found = BatchedSaves(self._save_all, self._timeout)
            self._by_loop[loop] = found
        return found


class BatchedSaves:
    """The saves of one event loop: those being made, and those that wait for them."""

    def __init__(self, save_all: SaveAll, timeout: float) -> None:
        self._save_all = save_all
        self._timeout = timeout
        self._running = 0
        self._waiting: list[WaitingSave] = []
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def save(
        self,
        write: Write,
        alone: Callable[[NotSaved | None, float], Awaitable[Receipt | None]],
    ) -> Receipt | None:
        """Make a save with others, or by itself."""
        deadline = time.monotonic() + self._timeout
        if self._running < CONCURRENT:
            return await self._run(alone(None, deadline))
        future: asyncio.Future[Receipt | NotSaved] = asyncio.Future()
        answer = await self._answer(WaitingSave(write, deadline, future))
        if isinstance(answer, Receipt):
            return answer
        return await alone(answer, deadline)

    async def _run(self, work: Awaitable[Receipt | None]) -> Receipt | None:
        self._running += 1
        try:
            return await work
        finally:
            self._end()

    def _end(self) -> None:
        self._running -= 1
        if self._waiting and self._running < CONCURRENT:
            self._send()

    def _send(self) -> None:
        """Send the saves that wait as one batch."""
        task = asyncio.create_task(self._make(self._chosen()))
        self._running += 1
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if self._waiting:
            self._start_timer()

    def _start_timer(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(LONGEST_WAIT, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if self._waiting:
            self._send()

    def _chosen(self) -> list[WaitingSave]:
        """The saves that waited longest, one of each family, in the order of locks."""
        chosen: dict[int, WaitingSave] = {}
        now = self._waiting[:LARGEST_BATCH]
        self._waiting = self._waiting[LARGEST_BATCH:]
        for waiting in now:
            assert isinstance(waiting.write.expect, Checkpoint)
            first = chosen.setdefault(waiting.write.expect.family, waiting)
            if first is not waiting and not waiting.answer.done():
                # Most likely both save to one thread, and only one can succeed.
                waiting.answer.set_result(NotSaved(is_doubtful=False))
        return [chosen[family] for family in sorted(chosen)]

    async def _answer(self, waiting: WaitingSave) -> Receipt | NotSaved:
        self._waiting.append(waiting)
        if self._timer is None:
            self._start_timer()
        try:
            return await waiting.answer
        except BaseException:
            self._waiting = [other for other in self._waiting if other is not waiting]
            raise

    async def _make(self, batch: list[WaitingSave]) -> None:
        try:
            writes = [waiting.write for waiting in batch]
            deadline = min(waiting.deadline for waiting in batch)
            answers = await self._save_all(writes, deadline)
        except BaseException as error:  # noqa: BLE001 - raised in the tasks that wait
            for waiting in batch:
                if not waiting.answer.done():
                    waiting.answer.set_exception(error)
        else:
            for waiting, answer in zip(batch, answers, strict=True):
                if waiting.write.report and isinstance(answer, Receipt):
                    waiting.write.report(len(batch), None)
                if not waiting.answer.done():
                    waiting.answer.set_result(answer)
        finally:
            self._end()
