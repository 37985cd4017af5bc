"""A branch of an exploration while it runs: its thread, its budget, and its end."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, cast

import msgspec
from msgspec.structs import replace

from holdfast._api.branch_folder import BranchFolder
from holdfast._api.runner import AsyncRunner
from holdfast._engine.threads import explore, lineage
from holdfast._engine.threads.explore import BranchResult, ExplorationPlan, Status
from holdfast.errors import NotFound, Unstorable

if TYPE_CHECKING:  # the sync API does not need it
    import asyncio

T = TypeVar("T")


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of each branch; ``None`` is no limit."""

    steps: int | None = None
    seconds: float | None = None
    tokens: int | None = None


class BranchStopped(BaseException):
    """Ends a branch from inside of the caller's function.

    Not an `Exception`, so that a function that goes on after errors ends as well.
    """


class BranchInterrupted(BranchStopped):
    """Ends a branch that is to go on later, when the exploration is called again."""


class Stops:
    """The branches that have to end: all of them, or all but number ``by``."""

    def __init__(self) -> None:
        self.all = False
        self.by: int | None = None
        # The tasks whose functions are being awaited, by number.
        self.tasks: dict[int, asyncio.Task[Any]] = {}


class Branch(Generic[T]):
    """The argument of the function that explores: a thread of its own, and a budget.

    ``number`` counts the branches from 1. ``tokens`` is what was reported so far, also
    by a process that was killed. ``resumed`` tells that it goes on after such a kill.
    ``workspace`` is a folder of its own, if the exploration has a workspace.
    """

    def __init__(
        self,
        thread: T,
        before: BranchResult,
        budget: Budget,
        stops: Stops,
        folder: BranchFolder | None = None,
    ) -> None:
        self.thread = thread
        self.workspace: Any = None
        self._folder = folder
        self.number = before.number
        self.tokens = before.tokens
        self.resumed = before.seconds > 0
        self._before, self._budget, self._stops = before, budget, stops
        self._began = time.monotonic()

    def __repr__(self) -> str:
        return f"<branch {self.number}: {self.thread!r}>"

    def spend(self, *, tokens: int = 0) -> None:
        """Report what was used, and end the branch if that was all it may use."""
        if type(tokens) is not int or tokens < 0:
            raise Unstorable("tokens", f"must be a whole number, not {tokens!r}")
        self.tokens += tokens
        self.check()

    def check(self) -> None:
        """End the branch here if its budget is used up or it was stopped."""
        stops, budget = self._stops, self._budget
        if stops.all:
            raise BranchInterrupted
        if stops.by not in (None, self.number):
            raise BranchStopped(f"stopped by branch {stops.by}")
        if budget.tokens is not None and self.tokens >= budget.tokens:
            raise BranchStopped(f"used {self.tokens:,} of {budget.tokens:,} tokens")
        left = self.seconds_left
        if left is not None and left <= 0:
            raise BranchStopped(f"used up its {budget.seconds:g} seconds")

    def stop_others(self) -> None:
        """End all other branches: this one has found what was looked for.

        Branches of the async API are cancelled; branches in threads end at their next
        `check`.
        """
        self._stops.by = self.number
        for number, task in self._stops.tasks.items():
            if number != self.number:
                task.cancel()

    @property
    def seconds(self) -> float:
        """The time that the branch has run, also in processes that were killed."""
        return self._before.seconds + time.monotonic() - self._began

    @property
    def seconds_left(self) -> float | None:
        """The time that the branch may still run, ``None`` for any time."""
        limit = self._budget.seconds
        return None if limit is None else limit - self.seconds

    @property
    def so_far(self) -> BranchResult:
        """The result so far, to be recorded."""
        return replace(self._before, tokens=self.tokens, seconds=self.seconds)

    async def begin(self) -> None:
        """Make the folder, unless it is there, and begin to count the seconds."""
        folder = self._folder
        if folder is not None:
            if not folder.is_there:
                await given(folder.writing(self.thread))
                folder.finish()
            self.workspace = folder.opened()
        self._began = time.monotonic()


# Calls the caller's function; true if it wants to be called again.
Call: TypeAlias = Callable[[Branch[T]], Awaitable[object]]
Score: TypeAlias = Callable[[Branch[T]], object]


class BranchRun(Generic[T]):
    """Runs a branch to its end: one text for threads and for tasks."""

    def __init__(
        self,
        runner: AsyncRunner,
        plan: ExplorationPlan,
        call: Call[T],
        score: Score[T] | None,
        budget: Budget,
    ) -> None:
        self._runner, self._plan = runner, plan
        self._call, self._score, self._budget = call, score, budget

    async def run(self, branch: Branch[T]) -> BranchResult:
        """The result of a branch; it is recorded before this returns."""
        status, error = await self._steps(branch)
        if status == "running":
            await self._keep(branch.so_far)
            return branch.so_far
        score: float | None = None
        if status != "failed" and self._score is not None:
            try:
                score = checked_score(await given(self._score(branch)))
            except Exception as failure:  # noqa: BLE001 - one result among others
                status, error = "failed", described(failure)
        ended = replace(branch.so_far, status=status, error=error, score=score)
        return await self._recorded(ended)

    async def _steps(self, branch: Branch[T]) -> tuple[Status, str | None]:
        try:
            await branch.begin()
            await self._check(branch)
            while await self._call(branch) is True:
                await self._keep(branch.so_far)
                await self._check(branch)
        except BranchInterrupted:
            return "running", None
        except BranchStopped as stopped:
            return "stopped", str(stopped)
        except Exception as failure:  # noqa: BLE001 - one result among others
            return "failed", described(failure)
        return "finished", None

    async def _check(self, branch: Branch[T]) -> None:
        branch.check()
        limit, name = self._budget.steps, branch.so_far.thread
        if limit is None:
            return
        made = await self._runner.run(lineage.find_step, name) - self._plan.step
        if made >= limit:
            raise BranchStopped(f"made {made:,} of {limit:,} steps")

    async def _recorded(self, ended: BranchResult) -> BranchResult:
        try:
            state = await self._runner.run(
                explore.state_of_branch, ended.thread, self._plan.at
            )
        except NotFound as missing:
            return replace(ended, status="failed", error=described(missing))
        found = replace(
            ended, head=state.head, steps=state.steps, differs=state.differs
        )
        await self._keep(found)
        return found

    async def _keep(self, result: BranchResult) -> None:
        await self._runner.save(explore.keep_result, result.thread, result)


async def given(value: object) -> object:
    """The result of a caller's function, awaited if it has to be."""
    if isinstance(value, Awaitable):
        return await cast("Awaitable[object]", value)
    return value


def checked_score(value: object) -> float | None:
    """A score that can be ranked, ``None`` for none."""
    if value is None:
        return None
    if not isinstance(value, int | float) or value != value:  # noqa: PLR0124 - NaN
        raise Unstorable("score", f"must be a number or None, not {value!r}")
    return float(value)


def described(failure: BaseException) -> str:
    """An error on one line."""
    return f"{type(failure).__name__}: {failure}".partition("\n")[0]
