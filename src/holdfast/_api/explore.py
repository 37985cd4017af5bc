"""Running the branches of an exploration side by side, in threads or in tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypedDict, TypeVar

import msgspec

from holdfast._api.branch import (
    Branch,
    BranchRun,
    BranchStopped,
    Budget,
    Call,
    Stops,
    given,
)
from holdfast._api.branch_folder import (
    BranchFolder,
    RestorableFolder,
    checked_workspace,
)
from holdfast._engine.threads.explore import BranchResult, ExplorationPlan
from holdfast._port import run
from holdfast._values.keywords import refuse_unknown
from holdfast._values.records import checked_name
from holdfast.effects import Policy, checked
from holdfast.errors import Unstorable

T = TypeVar("T")

MOST_BRANCHES = 100
LIMITS = ("keep", "steps", "seconds", "tokens", "at_once")


class ExploreOptions(TypedDict, total=False):
    """Options of an exploration; `Thread.explore` explains them."""

    name: str | None
    keep: int | None
    effects: Policy
    workspace: RestorableFolder | None
    steps: int | None
    seconds: float | None
    tokens: int | None
    at_once: int | None


class Choices(msgspec.Struct, frozen=True):
    """The options of an exploration, checked."""

    n: int
    name: str | None
    keep: int | None
    effects: Policy
    workspace: RestorableFolder | None
    budget: Budget
    at_once: int

    def folder(self, plan: ExplorationPlan, number: int) -> BranchFolder | None:
        """The folder of a branch, ``None`` without a workspace."""
        if self.workspace is None:
            return None
        return BranchFolder(self.workspace, plan, number)


def choices(n: int, options: ExploreOptions) -> Choices:
    """The options of an exploration; refuses what makes no sense."""
    refuse_unknown("an exploration", options, ExploreOptions)
    name = options.get("name")
    if type(n) is not int or not 1 <= n <= MOST_BRANCHES:
        raise Unstorable("n", f"must be a number from 1 to {MOST_BRANCHES}, not {n!r}")
    for limit in LIMITS:
        _check_limit(limit, options.get(limit))
    return Choices(
        n=n,
        name=None if name is None else checked_name(name, "name"),
        keep=options.get("keep"),
        effects=checked(options.get("effects")) or "deny",
        workspace=checked_workspace(options.get("workspace")),
        budget=Budget(
            steps=options.get("steps"),
            seconds=options.get("seconds"),
            tokens=options.get("tokens"),
        ),
        at_once=options.get("at_once") or n,
    )


def _check_limit(name: str, value: object) -> None:
    kinds = int | float if name == "seconds" else int
    if isinstance(value, kinds) and not isinstance(value, bool) and value > 0:
        return
    if value is not None:
        raise Unstorable(name, f"must be a number above 0 or None, not {value!r}")


# --- threads --------------------------------------------------------------------------


def blocking_call(step: Callable[[Branch[T]], object]) -> Call[T]:
    """Calls the function in the thread of its branch."""

    async def call(branch: Branch[T]) -> object:
        return await given(step(branch))

    return call


def in_threads(
    work: BranchRun[T], branches: Sequence[Branch[T]], stops: Stops, at_once: int
) -> list[BranchResult]:
    """The results of branches, each in a thread of its own."""

    def finish(branch: Branch[T]) -> BranchResult:
        return run(work.run(branch))

    with ThreadPoolExecutor(at_once, thread_name_prefix="explore") as pool:
        waiting = [pool.submit(copy_context().run, finish, one) for one in branches]
        try:
            return [future.result() for future in waiting]
        except BaseException:
            # Such as Ctrl-C: the branches end at their next check, and can go on later.
            stops.all = True
            for future in waiting:
                future.cancel()
            raise


# --- tasks ----------------------------------------------------------------------------


def awaited_call(step: Callable[[Branch[T]], object], stops: Stops) -> Call[T]:
    """Awaits the function; it is cancelled when its time is up or it was stopped."""
    import asyncio  # noqa: PLC0415 - the sync API does not need it

    async def call(branch: Branch[T]) -> object:
        task = asyncio.current_task()
        assert task is not None
        stops.tasks[branch.number] = task
        timer = asyncio.timeout(branch.seconds_left)
        try:
            async with timer:
                return await given(step(branch))
        except TimeoutError:
            if timer.expired():
                raise BranchStopped("used up its seconds") from None
            raise
        except asyncio.CancelledError:
            _raise_stopped(branch, task)
            raise
        finally:
            del stops.tasks[branch.number]

    return call


def _raise_stopped(branch: Branch[Any], task: Any) -> None:
    """Tell what a cancellation means: the whole exploration is cancelled otherwise."""
    if not task.cancelling():
        raise RuntimeError("the branch cancelled itself") from None
    try:
        branch.check()
    except BranchStopped:
        task.uncancel()
        raise


async def in_tasks(
    work: BranchRun[T], branches: Sequence[Branch[T]], at_once: int
) -> list[BranchResult]:
    """The results of branches, each in a task of its own."""
    import asyncio  # noqa: PLC0415 - the sync API does not need it

    room = asyncio.Semaphore(at_once)

    async def finish(branch: Branch[T]) -> BranchResult:
        async with room:
            return await work.run(branch)

    tasks = [asyncio.create_task(finish(branch)) for branch in branches]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
