"""The branches of a handle on a thread: explore some, and merge one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Unpack

from holdfast._api import branch as branch_api
from holdfast._api import exploration as exploration_api
from holdfast._api import explore as explore_api
from holdfast._api.keywords import MergeOptions, merge_options
from holdfast._api.runner import AsyncRunner, Runner
from holdfast._engine.threads import explore, merge
from holdfast._port import Start
from holdfast._values.arguments import checked_flag, checked_function, kind_of
from holdfast._values.records import Checkpoint
from holdfast.errors import Unstorable

if TYPE_CHECKING:  # an import cycle, and modules that `holdfast log` need not load
    from holdfast._api.branch import Branch, Score
    from holdfast._api.exploration import AsyncExploration, Exploration
    from holdfast._api.explore import ExploreOptions
    from holdfast._api.thread import AsyncThread, Thread
    from holdfast._engine.threads.explore import BranchResult
    from holdfast._engine.threads.merge import Merge, Resolve, Side


class ThreadBranches:
    """Branches of a thread."""

    _runner: Runner
    _start: Start
    id: str

    def explore(
        self,
        step: Callable[[Branch[Thread]], object],
        *,
        n: int = 3,
        score: Score[Thread] | None = None,
        **options: Unpack[ExploreOptions],
    ) -> Exploration:
        """Try ``n`` alternatives side by side, each in a fork and a thread of its own.

        ``step`` gets a `Branch` and works on its thread; while it returns ``True`` it
        is called again. ``score`` gives each branch a number, the highest first. A
        branch that raises is one result among others. Options:

        - ``effects`` is the policy of the forks, ``"deny"`` by default: no tool with
          an effect runs.
        - ``workspace``: each branch has a folder of its own, `Branch.workspace`, with
          the files of the head. Save it with ``files=branch.workspace``.
        - ``steps`` (checkpoints), ``seconds`` and ``tokens`` (as reported with
          `Branch.spend`) limit each branch. Limits are looked at between calls of
          ``step``, by `Branch.spend` and by `Branch.check`.
        - ``keep`` deletes the threads of all but the best; ``at_once`` is how many run
          at the same time.
        - ``name`` is what the exploration is recorded under. A program that was killed
          calls this again: branches that have ended are not repeated, the others go on
          where their threads stand. Without a name, it is that of the head. Only one
          process may run an exploration at a time.
        """
        checked_function(step, "step")
        if score is not None:
            checked_function(score, "score")
        checked_function(step, "step")
        if score is not None:
            checked_function(score, "score")
        chosen, stops = explore_api.choices(n, options), branch_api.Stops()
        plan = self._runner.save(
            explore.begin, self.id, chosen.name, chosen.n, chosen.effects
        )
        done = self._runner.run(explore.results, plan)
        if done is None:
            found = self._runner.run(explore.progress, plan)
            runner = self._runner.without_threads()
            work = branch_api.BranchRun(
                runner, plan, explore_api.blocking_call(step), score, chosen.budget
            )
            branches = [
                branch_api.Branch(
                    self._of_branch(one),
                    one,
                    chosen.budget,
                    stops,
                    chosen.folder(plan, one.number),
                )
                for one in _pending(found)
            ]
            found = _ended(found) + explore_api.in_threads(
                work, branches, stops, chosen.at_once
            )
            done = self._runner.save(explore.finish, self.id, plan, found, chosen.keep)
        return exploration_api.Exploration(self._runner, plan, done)

    def _of_branch(self, result: BranchResult) -> Thread:
        from holdfast._api.thread import Thread  # noqa: PLC0415 - it imports this

        return Thread(self._runner, result.thread, self._start)

    def merge(
        self,
        other: Thread | Checkpoint,
        *,
        resolve: Resolve | None = None,
        prefer: Side | None = None,
        dry_run: bool = False,
        **options: Unpack[MergeOptions],
    ) -> Merge:
        """Merge what a fork, or a checkpoint of it, has changed since both parted.

        A value that one side changed is taken; one that both changed to different
        values is a conflict. Mappings are merged by key, lists by element where each
        has an ``id``; a transcript is never interleaved. Nothing is saved before every
        conflict is decided: `Conflict` with the code ``merge_conflict`` has those that
        are not.

        - ``resolve`` maps paths to values, or is a function that gets a `MergeConflict`
          and returns the value, `ABSENT` to have none, or the conflict to leave it.
        - ``prefer`` takes ``"ours"`` or ``"theirs"`` for what ``resolve`` leaves.
        - ``dry_run`` saves nothing and gives the preview, with the conflicts.
        - ``label``, ``tags`` and ``metadata`` are those of the save. Its metadata also
          name the parents.

        The save expects the head that was merged: `Conflict` if the head moved.
        """
        how, decide = merge_options(self._start, options), merge.choice(resolve, prefer)
        checked_flag(dry_run, "dry_run")
        theirs = merged_from(other)
        plan = self._runner.run(merge.preview, self.id, theirs, decide)
        return plan if dry_run else self._runner.save(merge.merge, self.id, plan, how)


class AsyncThreadBranches:
    """Like `ThreadBranches`, awaited."""

    _runner: AsyncRunner
    _start: Start
    id: str

    async def explore(
        self,
        step: Callable[[Branch[AsyncThread]], object],
        *,
        n: int = 3,
        score: Score[AsyncThread] | None = None,
        **options: Unpack[ExploreOptions],
    ) -> AsyncExploration:
        chosen, stops = explore_api.choices(n, options), branch_api.Stops()
        plan = await self._runner.save(
            explore.begin, self.id, chosen.name, chosen.n, chosen.effects
        )
        done = await self._runner.run(explore.results, plan)
        if done is None:
            found = await self._runner.run(explore.progress, plan)
            call = explore_api.awaited_call(step, stops)
            work = branch_api.BranchRun(self._runner, plan, call, score, chosen.budget)
            branches = [
                branch_api.Branch(
                    self._of_branch(one),
                    one,
                    chosen.budget,
                    stops,
                    chosen.folder(plan, one.number),
                )
                for one in _pending(found)
            ]
            found = _ended(found) + await explore_api.in_tasks(
                work, branches, chosen.at_once
            )
            done = await self._runner.save(
                explore.finish, self.id, plan, found, chosen.keep
            )
        return exploration_api.AsyncExploration(self._runner, plan, done)

    def _of_branch(self, result: BranchResult) -> AsyncThread:
        from holdfast._api.thread import AsyncThread  # noqa: PLC0415 - as above

        return AsyncThread(self._runner, result.thread, self._start)

    async def merge(
        self,
        other: AsyncThread | Checkpoint,
        *,
        resolve: Resolve | None = None,
        prefer: Side | None = None,
        dry_run: bool = False,
        **options: Unpack[MergeOptions],
    ) -> Merge:
        how, decide = merge_options(self._start, options), merge.choice(resolve, prefer)
        checked_flag(dry_run, "dry_run")
        theirs = merged_from(other)
        plan = await self._runner.run(merge.preview, self.id, theirs, decide)
        if dry_run:
            return plan
        return await self._runner.save(merge.merge, self.id, plan, how)


def merged_from(other: object) -> str | Checkpoint:
    """The other side of a merge: the head of a thread, or a checkpoint."""
    if isinstance(other, Checkpoint):
        return other
    if isinstance(other, ThreadBranches | AsyncThreadBranches):
        return other.id
    hint = f": pass store.thread({other!r})" if isinstance(other, str) else ""
    text = f"must be a thread or a checkpoint, not {kind_of(other)}{hint}"
    raise Unstorable("other", text)


def _pending(found: list[BranchResult]) -> list[BranchResult]:
    return [one for one in found if one.status == "running"]


def _ended(found: list[BranchResult]) -> list[BranchResult]:
    return [one for one in found if one.status != "running"]
