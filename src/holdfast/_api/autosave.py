"""Automatic checkpoints of agents by time: a loop in a thread, or a task."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Self

import msgspec

from holdfast._api.runner import AsyncRunner, Runner
from holdfast._engine.records.agents import checked_agent
from holdfast._engine.records.restore import check_keep, take_automatic
from holdfast._values.arguments import checked_function, checked_seconds
from holdfast.errors import HoldfastError, Unstorable

if TYPE_CHECKING:  # the sync API does not need it
    import asyncio

OnError = Callable[[str, Exception], object]


class AutosavePlan(msgspec.Struct, frozen=True):
    """The agents to save, how often, and how many checkpoints of each to keep."""

    agents: tuple[str, ...]
    seconds: float
    keep: int | None
    on_error: OnError | None


def plan(
    agents: Sequence[str],
    every: timedelta | float,
    keep: int | None,
    on_error: OnError | None,
) -> AutosavePlan:
    """A checked plan."""
    seconds = every.total_seconds() if isinstance(every, timedelta) else every
    if not agents:
        raise Unstorable("autosave", "needs the id of at least one agent")
    if not checked_seconds(seconds, "every") > 0:
        raise Unstorable("every", f"must be more than 0 seconds, not {every!r}")
    check_keep(keep)
    if on_error is not None:
        checked_function(on_error, "on_error")
    names = tuple(dict.fromkeys(checked_agent(agent) for agent in agents))
    return AutosavePlan(names, checked_seconds(seconds, "every"), keep, on_error)


class _Failures:
    """Passes errors to the caller's hook, or without one keeps the first.

    An error of the hook itself is kept as well.
    """

    def __init__(self, on_error: OnError | None) -> None:
        self._on_error = on_error
        self._first: Exception | None = None

    def add(self, agent: str, error: Exception) -> None:
        if self._on_error is None:
            self._first = self._first or error
            return
        try:
            self._on_error(agent, error)
        except Exception as wrong:  # noqa: BLE001 - the loop has to go on
            self._first = self._first or wrong

    def raise_first(self) -> None:
        first, self._first = self._first, None
        if first is not None:
            raise first


class AutoCheckpoints:
    """Automatic checkpoints of some agents; made by ``store.agents.autosave``.

    Starting it again while it runs does nothing. Stopping takes a last checkpoint and
    waits; without a hook for errors it raises the first that occurred. An agent that
    did not change is not saved.
    """

    def __init__(
        self, runner: Runner, plan: AutosavePlan, running: set[AutoCheckpoints]
    ) -> None:
        self._runner, self._plan, self._running = runner, plan, running
        self._failures = _Failures(plan.on_error)
        self._starting = threading.Lock()
        self._loop: tuple[threading.Thread, threading.Event] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the loop, unless it is running."""
        with self._starting:
            if self._loop is not None:
                return
            over = threading.Event()
            thread = threading.Thread(
                target=self._run, args=(over,), name="holdfast-autosave", daemon=True
            )
            self._loop = thread, over
            self._running.add(self)
            thread.start()

    def stop(self) -> None:
        """Take a last checkpoint, wait for it, and end the loop; twice is fine.

        Called in the hook for errors, it does not wait: call it again afterwards.
        """
        if self._loop is None:
            return
        thread, over = self._loop
        over.set()
        if thread is threading.current_thread():
            return
        thread.join()
        self._loop = None
        self._running.discard(self)
        self._failures.raise_first()

    def _run(self, over: threading.Event) -> None:
        while not over.wait(min(self._plan.seconds, threading.TIMEOUT_MAX)):
            self.take()
        self.take()

    def take(self) -> None:
        """Save every agent that changed, now."""
        for agent in self._plan.agents:
            try:
                self._runner.run(take_automatic, agent, self._plan.keep)
            except Exception as error:  # noqa: BLE001 - it is the caller's
                self._failures.add(agent, error)


class AsyncAutoCheckpoints:
    """Like `AutoCheckpoints`, awaited; the loop is a task."""

    def __init__(
        self,
        runner: AsyncRunner,
        plan: AutosavePlan,
        running: set[AsyncAutoCheckpoints],
    ) -> None:
        self._runner, self._plan, self._running = runner, plan, running
        self._failures = _Failures(plan.on_error)
        self._loop: tuple[asyncio.Task[None], asyncio.Event] | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        import asyncio  # noqa: PLC0415 - the sync API does not need it

        if self._loop is not None:
            return
        over = asyncio.Event()
        self._loop = asyncio.create_task(self._run(over)), over
        self._running.add(self)

    async def stop(self) -> None:
        if self._loop is None:
            return
        import asyncio  # noqa: PLC0415

        task, over = self._loop
        if task.get_loop() is asyncio.get_running_loop():
            over.set()
            # A caller cancelled here leaves the last checkpoint to the task.
            await asyncio.wait([task])
        elif not task.get_loop().is_closed():
            text = "the autosave runs in another event loop; stop it there"
            raise HoldfastError(text, code="other_loop")
        self._loop = None
        self._running.discard(self)
        self._failures.raise_first()

    async def _run(self, over: asyncio.Event) -> None:
        import asyncio  # noqa: PLC0415

        while not over.is_set():
            try:
                await asyncio.wait_for(over.wait(), self._plan.seconds)
            except TimeoutError:
                await self.take()
        await self.take()

    async def take(self) -> None:
        for agent in self._plan.agents:
            try:
                await self._runner.run(take_automatic, agent, self._plan.keep)
            except Exception as error:  # noqa: BLE001 - it is the caller's
                self._failures.add(agent, error)
