"""Removing what a retention policy does not keep."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from datetime import timedelta
from functools import partial

from msgspec.structs import replace

from holdfast._engine.context import Context
from holdfast._engine.effects.expiry import expired
from holdfast._engine.records import conversations
from holdfast._engine.threads.removal import (
    OVERTAKEN,
    by_family,
    carry_out,
    checkpoints_of,
    unneeded,
    until_current,
)
from holdfast._engine.upkeep.scope import EVERYTHING, PruneScope, removable
from holdfast._port import FamilyPlan, Prune, Pruned, Threads, Write
from holdfast._port.removal import plan_removal
from holdfast._values.records import Checkpoint, ThreadRecord
from holdfast.errors import Conflict, HoldfastError
from holdfast.retention import Retention, checkpoints_to_remove, threads_to_drop

# How long the tombstone of a deleted thread refuses late writers.
TOMBSTONE_LIFE = 30 * 24 * 3600 * 1_000_000


async def prune(
    context: Context,
    policy: Retention,
    scope: PruneScope = EVERYTHING,
    *,
    dry_run: bool,
) -> Pruned:
    """Remove what a policy does not keep of the threads in a scope."""

    async def attempt() -> Pruned:
        plan = await _plan(context, policy, scope)
        await _guard(context, policy, scope, plan)
        return await carry_out(context, replace(plan, dry_run=dry_run))

    try:
        return await until_current(attempt, again=1)
    except Conflict as conflict:
        if conflict.code not in OVERTAKEN:
            raise
    return await _prune_by_family(context, policy, scope, dry_run=dry_run)


async def prune_conversations(
    context: Context, policy: Retention, scope: PruneScope, *, dry_run: bool
) -> Pruned:
    """Remove the conversations that a policy's rules for threads do not keep."""
    only = replace(policy, kinds=(conversations.KIND,))
    return await prune(context, only, scope, dry_run=dry_run)


async def _prune_by_family(
    context: Context, policy: Retention, scope: PruneScope, *, dry_run: bool
) -> Pruned:
    """As `prune`, one family at a time.

    Of two processes that prune the whole store at once, one would always come too late.
    """

    async def guard() -> None:
        await _guard(context, policy, scope, await _plan(context, policy, scope))

    async def attempt(family: int) -> Pruned:
        plan = await _plan(context, policy, scope, family)
        return await carry_out(context, replace(plan, dry_run=dry_run))

    await until_current(guard)
    threads = await _threads(context, scope)
    families = {thread.family for thread in threads if scope.has(thread)}
    parts = [await until_current(partial(attempt, f)) for f in sorted(families)]
    return Pruned(
        threads=sum(part.threads for part in parts),
        checkpoints=sum(part.checkpoints for part in parts),
        segments=sum(part.segments for part in parts),
        bytes=sum(part.bytes for part in parts),
    )


class Housekeeping:
    """Applies a policy after saves, at most once in ``interval`` microseconds."""

    def __init__(self, policy: Retention, interval: int) -> None:
        self._policy, self._interval = policy, interval
        self._last: int | None = None

    async def __call__(self, context: Context) -> None:
        """Prune if it is due; a failure never fails the save."""
        now = context.clock()
        if not self._is_due(now):
            return
        before, self._last = self._last, now
        try:
            await prune(context, self._policy, dry_run=False)
        except HoldfastError as error:
            self._last = before
            text = f"saved, but pruning afterwards failed: {error}"
            warnings.warn(text, RuntimeWarning, stacklevel=2)

    def _is_due(self, now: int) -> bool:
        return self._last is None or abs(now - self._last) >= self._interval


async def _plan(
    context: Context, policy: Retention, scope: PruneScope, family: int | None = None
) -> Prune:
    """What to remove from all families, or from one."""
    now = context.clock()
    living = [t for t in await _threads(context, scope) if t.deleted_at is None]
    dropped = threads_to_drop(policy, filter(scope.has, living), now)
    if family is not None:
        living = [thread for thread in living if thread.family == family]
        dropped = [thread for thread in dropped if thread.family == family]
    names = {thread.id for thread in dropped}
    families: list[FamilyPlan] = []
    for number, threads in by_family(living).items():
        staying = [thread for thread in threads if thread.id not in names]
        thinned = [t for t in staying if scope.has(t) and policy.may_thin(t.kind)]
        if not staying or (len(staying) == len(threads) and not thinned):
            continue
        checkpoints = await checkpoints_of(context, number)
        doomed = unneeded(staying, checkpoints)
        if thinned:
            own = removable(staying, thinned, checkpoints)
            doomed = _also_thinned(policy, staying, checkpoints, doomed, own, now)
        if doomed:
            families.append(plan_removal(number, checkpoints, doomed))
    return Prune(
        at=now,
        threads=tuple(dropped),
        families=tuple(families),
        then=await _expired(context, policy, living, scope, names),
        forget_before=None if scope.is_limited else now - TOMBSTONE_LIFE,
    )


async def _expired(
    context: Context,
    policy: Retention,
    living: Sequence[ThreadRecord],
    scope: PruneScope,
    dropped: set[str],
) -> tuple[Write, ...]:
    """What forgets old effects of the threads that stay."""
    if policy.effects is None:
        return ()
    before = context.clock() - policy.effects // timedelta(microseconds=1)
    meant = [t for t in living if scope.has(t) and policy.is_for(t.kind)]
    names = {thread.id for thread in meant} - dropped
    families = {t.family for t in living if t.id in names}
    writes = [w for f in sorted(families) for w in await expired(context, f, before)]
    return tuple(write for write in writes if write.thread in names)


def _also_thinned(
    policy: Retention,
    threads: Sequence[ThreadRecord],
    checkpoints: Sequence[Checkpoint],
    unneeded: Sequence[Checkpoint],
    removable: set[str],
    now: int,
) -> list[Checkpoint]:
    gone = {checkpoint.id for checkpoint in unneeded}
    left = [checkpoint for checkpoint in checkpoints if checkpoint.id not in gone]
    thinned = checkpoints_to_remove(policy, threads, left, now)
    gone |= {checkpoint.id for checkpoint in thinned} & removable
    return [checkpoint for checkpoint in checkpoints if checkpoint.id in gone]


async def _guard(
    context: Context, policy: Retention, scope: PruneScope, plan: Prune
) -> None:
    """Refuse a plan that removes more than the policy allows."""
    if policy.at_most is None:
        return
    removed = (await context.backend.prune(replace(plan, dry_run=True))).checkpoints
    total = await _total(context, scope)
    if removed > policy.at_most * total:
        raise Conflict(
            f"pruning would remove {removed} of {total} checkpoints, more than"
            f" at_most={policy.at_most}; check the clock, or raise at_most",
            code="too_much",
        )


async def _total(context: Context, scope: PruneScope) -> int:
    """How many checkpoints there are in a scope, with those of deleted threads."""
    if not scope.is_limited:
        return (await context.backend.facts()).checkpoints
    living = [t for t in await _threads(context, scope) if t.deleted_at is None]
    outside = {thread.number for thread in living if not scope.has(thread)}
    families = {thread.family for thread in living if scope.has(thread)}
    found = [await checkpoints_of(context, family) for family in families]
    return sum(c.thread_number not in outside for saved in found for c in saved)


async def _threads(context: Context, scope: PruneScope) -> list[ThreadRecord]:
    """The threads in a scope and all that share history with them, or all threads."""
    query = Threads(every=True)
    if scope.thread is not None:
        record = await context.find_thread(scope.thread)
        if record is None:
            return []
        query = replace(query, family=record.family)
    return list(await context.backend.scan(query))
