"""Saves of many tasks made together: one statement, one transaction, one flush.

A save that finds few others under way is sent at once, alone. The others wait for one
of those to end and are then sent as one. Whatever cannot be made together, because its
head has moved, somebody holds its thread or anything else, is made alone after all.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

from holdfast._port import Receipt, Write
from holdfast._values.records import Checkpoint

# So many statements are under way before saves wait for one another, and so many saves
# are made by one. While the server is busy with two, the next is put together: 16 or 64
# tasks then make 14 % more saves than with three and 32.
LANES, MOST = 2, 24
# What is under way may wait for a lock that somebody holds; nobody else waits for that.
LONGEST_WAIT = 0.02

Together = Callable[[Sequence[Write], float], Awaitable["list[Receipt | Left]"]]


class Left(NamedTuple):
    """A save that was not made with the others, or perhaps was."""

    is_doubtful: bool


class _Waiting(NamedTuple):
    write: Write
    deadline: float
    answer: asyncio.Future[Receipt | Left]


def can_be_gathered(write: Write) -> bool:
    """Whether a write is a save of the plainest kind."""
    return (
        isinstance(write.expect, Checkpoint)
        and write.checkpoint is not None
        and write.checkpoint.label is None
        and not write.checkpoint.tags
        and not write.entries
    )


class Gatherings:
    """One for each event loop: of one that is over, nothing comes back."""

    def __init__(self, together: Together, timeout: float) -> None:
        self._together, self._timeout = together, timeout
        self._by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, Gathering]
        self._by_loop = WeakKeyDictionary()

    def here(self) -> Gathering:
        """That of the running loop."""
        loop = asyncio.get_running_loop()
        found = self._by_loop.get(loop)
        if found is None:
            found = Gathering(self._together, self._timeout)
            self._by_loop[loop] = found
        return found


class Gathering:
    """The saves of one event loop that are under way, and those that wait for them."""

    def __init__(self, together: Together, timeout: float) -> None:
        self._together = together
        self._timeout = timeout
        self._under_way = 0
        self._waiting: list[_Waiting] = []
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def save(
        self,
        write: Write,
        alone: Callable[[Left | None, float], Awaitable[Receipt | None]],
    ) -> Receipt | None:
        """Make a save with others, or by itself."""
        deadline = time.monotonic() + self._timeout
        if self._under_way < LANES:
            return await self._in_lane(alone(None, deadline))
        future: asyncio.Future[Receipt | Left] = asyncio.Future()
        answer = await self._answer(_Waiting(write, deadline, future))
        if isinstance(answer, Receipt):
            return answer
        return await alone(answer, deadline)

    async def _in_lane(self, work: Awaitable[Receipt | None]) -> Receipt | None:
        self._under_way += 1
        try:
            return await work
        finally:
            self._leave()

    def _leave(self) -> None:
        self._under_way -= 1
        if self._waiting and self._under_way < LANES:
            self._send()

    def _send(self) -> None:
        """Let those who wait go on."""
        task = asyncio.create_task(self._make(self._chosen()))
        self._under_way += 1
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if self._waiting:
            self._watch()

    def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(LONGEST_WAIT, self._be_late)

    def _be_late(self) -> None:
        self._timer = None
        if self._waiting:
            self._send()

    def _chosen(self) -> list[_Waiting]:
        """Those who have waited longest, one of each family, in the order of locks."""
        chosen: dict[int, _Waiting] = {}
        now, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
        for waiting in now:
            assert isinstance(waiting.write.expect, Checkpoint)
            first = chosen.setdefault(waiting.write.expect.family, waiting)
            if first is not waiting and not waiting.answer.done():
                # They are rivals, most likely, of whom one can win.
                waiting.answer.set_result(Left(is_doubtful=False))
        return [chosen[family] for family in sorted(chosen)]

    async def _answer(self, waiting: _Waiting) -> Receipt | Left:
        self._waiting.append(waiting)
        if self._timer is None:
            self._watch()
        try:
            return await waiting.answer
        except BaseException:
            self._waiting = [other for other in self._waiting if other is not waiting]
            raise

    async def _make(self, batch: list[_Waiting]) -> None:
        try:
            writes = [waiting.write for waiting in batch]
            deadline = min(waiting.deadline for waiting in batch)
            answers = await self._together(writes, deadline)
        except BaseException as error:  # noqa: BLE001 - theirs who wait for it
            for waiting in batch:
                if not waiting.answer.done():
                    waiting.answer.set_exception(error)
        else:
            for waiting, answer in zip(batch, answers, strict=True):
                if not waiting.answer.done():
                    waiting.answer.set_result(answer)
        finally:
            self._leave()
