"""Removing the checkpoints and threads that a retention policy does not keep."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from holdfast._engine.context import Context
from holdfast._engine.records import conversations
from holdfast._engine.threads.removal import OVERTAKEN, carry_out, until_current
from holdfast._engine.upkeep.prune_plans import EVERYTHING, PrunePlans, PruneRange
from holdfast._port import Prune, Pruned
from holdfast._values.arguments import check_progress, checked_flag, checked_instance
from holdfast._values.records import Progress
from holdfast.errors import Conflict, HoldfastError
from holdfast.retention import Retention

# The time for which the tombstone of a deleted thread refuses late writers.
TOMBSTONE_LIFE = 30 * 24 * 3600 * 1_000_000


async def prune(
    context: Context,
    policy: Retention,
    only: PruneRange = EVERYTHING,
    *,
    dry_run: bool,
    progress: Progress | None = None,
) -> Pruned:
    """Remove what a policy does not keep of some threads.

    It makes many transactions; the next prune removes what an interrupted one has left.
    """
    checked_instance(policy, Retention, "policy")
    checked_flag(dry_run, "dry_run")
    check_progress(progress)
    plans = PrunePlans(context, policy, only)
    await plans.find()
    counts = policy.at_most is not None or dry_run
    passes = [True] * counts + [False] * (not dry_run)
    run = _PruneRun(context, plans, progress, len(passes))
    result = Pruned()
    try:
        for is_dry in passes:
            result = await run.through(dry_run=is_dry)
            if is_dry:
                await _guard(plans, result.checkpoints)
        if not dry_run and not only.is_limited:
            before = plans.now - TOMBSTONE_LIFE
            await context.backend.prune(Prune(at=plans.now, forget_before=before))
    except HoldfastError as error:
        if run.has_removed:
            error.message += "; what was removed before stays removed: prune again"
        raise
    return result


async def prune_conversations(
    context: Context, policy: Retention, only: PruneRange, *, dry_run: bool
) -> Pruned:
    """Remove the conversations that a policy's rules for threads do not keep."""
    policy = replace(policy, kinds=(conversations.KIND,))
    return await prune(context, policy, only, dry_run=dry_run)


class _PruneRun:
    """Goes through the families of a prune, once or twice, a transaction a batch."""

    def __init__(
        self,
        context: Context,
        plans: PrunePlans,
        progress: Progress | None,
        passes: int,
    ) -> None:
        self._context, self._plans = context, plans
        self._progress = progress
        self._done, self._of = 0, len(plans.families) * passes
        # True once a transaction has removed something.
        self.has_removed = False

    async def through(self, *, dry_run: bool) -> Pruned:
        """Remove what goes, or only count it."""
        result = Pruned()
        for batch in self._plans.batches():
            result += await self._prune(batch, dry_run=dry_run)
            self.has_removed = not dry_run and result != Pruned()
            self._done += len(batch)
            if self._progress is not None:
                self._progress(self._done, self._of)
        return result

    async def _prune(self, families: Sequence[int], *, dry_run: bool) -> Pruned:
        """Prune some families together, or else one by one.

        Of two processes that prune the same families, one would always be stale.
        """

        removed = Pruned()

        async def attempt(some: Sequence[int]) -> None:
            nonlocal removed
            counted = removed
            async for plan in self._plans.plans(some, dry_run=dry_run):
                if plan.threads or plan.families or plan.then:
                    counted += await carry_out(self._context, plan)
                if not dry_run:  # it stays done if the next part is planned again
                    removed = counted
            removed = counted

        try:
            await until_current(partial(attempt, families), again=1)
        except Conflict as conflict:
            if conflict.code not in OVERTAKEN:
                raise
            for family in families:
                await until_current(partial(attempt, [family]))
        return removed


class Housekeeping:
    """Applies a policy after saves, at most once in ``interval`` microseconds."""

    def __init__(self, policy: Retention, interval: int) -> None:
        self._policy, self._interval = policy, interval
        self._last: int | None = None

    async def __call__(self, context: Context) -> None:
        """Prune if it is due; a failure never fails the save."""
        now = context.clock()
        if self._last is not None and abs(now - self._last) < self._interval:
            return
        before, self._last = self._last, now
        try:
            await prune(context, self._policy, dry_run=False)
        except HoldfastError as error:
            self._last = before
            text = f"saved, but pruning afterwards failed: {error}"
            warnings.warn(text, RuntimeWarning, stacklevel=2)


async def _guard(plans: PrunePlans, removed: int) -> None:
    """Refuse to remove more than the policy allows."""
    at_most = plans.policy.at_most
    if at_most is None:
        return
    if plans.only.is_limited:
        total = sum([await plans.count(batch) for batch in plans.batches()])
    else:
        total = (await plans.context.backend.facts()).checkpoints
    if removed > at_most * total:
        raise Conflict(
            f"pruning would remove {removed} of {total} checkpoints, more than"
            f" at_most={at_most}; check the clock, or raise at_most",
            code="too_much",
        )
