"""The results of an exploration, for the sync and the async API."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast._api.runner import AsyncRunner, Runner
from holdfast._engine.threads import explore
from holdfast._engine.threads.explore import BranchResult, ExplorationPlan
from holdfast._values.records import Checkpoint
from holdfast.errors import NotFound

HEADINGS = ("#", "branch", "status", "score", "steps", "tokens", "differs")
NOTHING = "-"


class RankedBranches:
    """The branches of an exploration, the highest score first; prints as a table."""

    def __init__(self, plan: ExplorationPlan, branches: Sequence[BranchResult]) -> None:
        self._plan = plan
        self.name = plan.name
        self.branches = tuple(branches)

    @property
    def best(self) -> BranchResult | None:
        """The first branch that did not fail, ``None`` if all did."""
        return next((one for one in self.branches if one.status != "failed"), None)

    def __iter__(self) -> Iterator[BranchResult]:
        return iter(self.branches)

    def __len__(self) -> int:
        return len(self.branches)

    def __str__(self) -> str:
        return aligned([HEADINGS, *map(_row, self.branches)])

    def __repr__(self) -> str:
        return f"<exploration {self.name!r} of {self._plan.thread!r}>\n{self}"

    def _chosen(self, number: int | None) -> BranchResult:
        found = self.best
        if number is not None:
            numbered = (one for one in self.branches if one.number == number)
            found = next(numbered, None)
        if found is not None and found.head is not None:
            return found
        which = "that ended well" if number is None else f"{number} with a checkpoint"
        text = f"the exploration {self.name!r} has no branch {which}; look at its table"
        raise NotFound(text, code="no_branch", thread=self._plan.thread)


class Exploration(RankedBranches):
    """The result of `Thread.explore`: its branches ranked, to look at and to adopt.

    Iterating gives a `BranchResult` for each branch; as text it is a table.
    """

    def __init__(
        self, runner: Runner, plan: ExplorationPlan, branches: Sequence[BranchResult]
    ) -> None:
        super().__init__(plan, branches)
        self._runner = runner

    def adopt(self, number: int | None = None) -> Checkpoint:
        """Move the head of the thread to the best branch, or to one by its number.

        An ordinary move, which `Thread.undo` takes back. The other branches stay, their
        heads tagged ``not-adopted``. `Conflict` if the head of the thread is not the
        one that was explored any more; then merge the branch.
        """
        plan, chosen = self._plan, self._chosen(number)
        return self._runner.save(explore.adopt, plan.thread, plan, chosen)


class AsyncExploration(RankedBranches):
    """Like `Exploration`, awaited."""

    def __init__(
        self,
        runner: AsyncRunner,
        plan: ExplorationPlan,
        branches: Sequence[BranchResult],
    ) -> None:
        super().__init__(plan, branches)
        self._runner = runner

    async def adopt(self, number: int | None = None) -> Checkpoint:
        plan, chosen = self._plan, self._chosen(number)
        return await self._runner.save(explore.adopt, plan.thread, plan, chosen)


def _row(result: BranchResult) -> list[str]:
    score = NOTHING if result.score is None else f"{result.score:g}"
    return [
        str(result.number),
        result.thread,
        result.status,
        score,
        str(result.steps),
        str(result.tokens),
        result.differs if result.error is None else result.error,
    ]


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows as lines with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True))
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)
