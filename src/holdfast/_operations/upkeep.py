"""Removing: checkpoints, threads, and whatever a retention policy does not keep."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from holdfast._backend import (
    FamilyPlan,
    Prune,
    Pruned,
    Saves,
    Threads,
    Turn,
    Write,
)
from holdfast._operations.context import Context, Housekeeping
from holdfast._operations.lineage import Reference, resolve
from holdfast._pruning import ancestry, plan_removal
from holdfast._records import PIN, Checkpoint, ThreadRecord
from holdfast.errors import Conflict, Corrupt, HoldfastError, NotFound, Unstorable
from holdfast.retention import (
    Family,
    Retention,
    checkpoints_to_remove,
    threads_to_drop,
)

T = TypeVar("T")

MOST_REPEATS = 20
# What it is called when somebody else was faster.
OVERTAKEN = {"plan_stale", "head_moved", "thread_deleted"}
# How long the tombstone of a deleted thread turns late writers away.
TOMBSTONE_LIFE = 30 * 24 * 3600 * 1_000_000


async def prune(context: Context, policy: Retention, *, dry_run: bool) -> Pruned:
    """Remove what a policy does not keep."""

    async def attempt() -> Pruned:
        plan = await _plan(context, policy)
        await _guard(context, policy, plan)
        return await context.backend.prune(replace(plan, dry_run=dry_run))

    try:
        return await until_current(attempt, again=1)
    except Conflict as conflict:
        if conflict.code not in OVERTAKEN:
            raise
    return await _prune_by_family(context, policy, dry_run=dry_run)


async def _prune_by_family(
    context: Context, policy: Retention, *, dry_run: bool
) -> Pruned:
    """The same in small steps: of two that plan for all, one would always be late."""

    async def guard() -> None:
        await _guard(context, policy, await _plan(context, policy))

    async def attempt(family: int) -> Pruned:
        plan = await _plan(context, policy, family)
        return await context.backend.prune(replace(plan, dry_run=dry_run))

    await until_current(guard)
    families = {thread.family for thread in await _all_threads(context)}
    parts = [await until_current(partial(attempt, f)) for f in sorted(families)]
    return Pruned(
        threads=sum(part.threads for part in parts),
        checkpoints=sum(part.checkpoints for part in parts),
        segments=sum(part.segments for part in parts),
        bytes=sum(part.bytes for part in parts),
    )


async def tidy(context: Context) -> None:
    """Apply the store's own policy if it is due; a failure never fails the save."""
    keeping = context.housekeeping
    now = context.clock()
    if keeping is None or not _is_due(keeping, now):
        return
    before, keeping.last = keeping.last, now
    try:
        await prune(context, keeping.policy, dry_run=False)
    except HoldfastError as error:
        keeping.last = before
        text = f"saved, but pruning afterwards failed: {error}"
        warnings.warn(text, RuntimeWarning, stacklevel=2)


def _is_due(keeping: Housekeeping, now: int) -> bool:
    return keeping.last is None or abs(now - keeping.last) >= keeping.interval


async def _plan(
    context: Context, policy: Retention, family: int | None = None
) -> Prune:
    """What goes of all families, or of one."""
    now = context.clock()
    living = [t for t in await _all_threads(context) if t.deleted_at is None]
    dropped = threads_to_drop(policy, living, now) if policy.drops_threads else []
    if family is not None:
        living = [thread for thread in living if thread.family == family]
        dropped = [thread for thread in dropped if thread.family == family]
    names = {thread.id for thread in dropped}
    families: list[FamilyPlan] = []
    for number, threads in _by_family(living).items():
        staying = [thread for thread in threads if thread.id not in names]
        # An agent's checkpoints keep their pins: only the agent can let both go.
        thins = policy.thins_threads and staying and staying[0].kind != "checkpoints"
        if not staying or (len(staying) == len(threads) and not thins):
            continue
        checkpoints = await _checkpoints(context, number)
        doomed = _unneeded(staying, checkpoints)
        if thins:
            doomed = _also_thinned(policy, staying, checkpoints, doomed, now)
        if doomed:
            families.append(plan_removal(number, checkpoints, doomed))
    return Prune(
        at=now,
        threads=tuple(dropped),
        families=tuple(families),
        forget_before=now - TOMBSTONE_LIFE,
    )


def _also_thinned(
    policy: Retention,
    threads: Sequence[ThreadRecord],
    checkpoints: Sequence[Checkpoint],
    unneeded: Sequence[Checkpoint],
    now: int,
) -> list[Checkpoint]:
    gone = {checkpoint.id for checkpoint in unneeded}
    left = [checkpoint for checkpoint in checkpoints if checkpoint.id not in gone]
    thinned = checkpoints_to_remove(policy, Family(threads, left), now)
    gone.update(checkpoint.id for checkpoint in thinned)
    return [checkpoint for checkpoint in checkpoints if checkpoint.id in gone]


async def _guard(context: Context, policy: Retention, plan: Prune) -> None:
    """Refuse a plan that removes more than the policy allows."""
    if policy.at_most is None:
        return
    removed = (await context.backend.prune(replace(plan, dry_run=True))).checkpoints
    total = (await context.backend.facts()).checkpoints
    if removed > policy.at_most * total:
        raise Conflict(
            f"pruning would remove {removed} of {total} checkpoints, more than"
            f" at_most={policy.at_most}; check the clock, or raise at_most",
            code="too_much",
        )


def _unneeded(
    staying: Sequence[ThreadRecord], checkpoints: Sequence[Checkpoint]
) -> list[Checkpoint]:
    """What belongs to threads that are gone and no surviving thread descends from."""
    numbers = {thread.number for thread in staying}
    own = [c.id for c in checkpoints if c.thread_number in numbers]
    needed = ancestry(checkpoints, [*own, *_roots(staying)])
    return [checkpoint for checkpoint in checkpoints if checkpoint.id not in needed]


def _roots(threads: Iterable[ThreadRecord]) -> list[str]:
    """Where the lines of threads begin to be needed: at heads and fork points."""
    found: list[str] = []
    for thread in threads:
        if thread.head is not None:
            found.append(thread.head.id)
        if thread.forked_from is not None:
            found.append(thread.forked_from.checkpoint)
    return found


async def delete_threads(context: Context, names: Iterable[str]) -> int:
    """Delete threads with all that only they use; returns how many there were."""
    wanted = set(names)

    async def attempt() -> int:
        found = [t for n in sorted(wanted) if (t := await context.find_thread(n))]
        if not found:
            return 0
        plans = await plans_without(context, found)
        whole = Prune(at=context.clock(), threads=tuple(found), families=tuple(plans))
        return (await context.backend.prune(whole)).threads

    return await until_current(attempt)


async def delete_matching(
    context: Context,
    names: Sequence[str],
    *,
    owner: str | None,
    agent: str | None,
    kind: str | None,
    prefix: str | None,
) -> int:
    """Delete the named threads and those that match all of the filters."""
    if (owner, agent, kind, prefix) == (None, None, None, None):
        if not names:
            text = "name threads, or an owner, agent, kind or prefix"
            raise Unstorable("delete", text)
        return await delete_threads(context, names)
    if kind == PIN:
        text = "pins go with their checkpoints: agents.delete_checkpoint()"
        raise Unstorable("delete", text)
    query = Threads(owner=owner, agent=agent, kind=kind, prefix=prefix, every=True)
    matching = [t.id for t in await context.backend.scan(query) if t.deleted_at is None]
    return await delete_threads(context, [*names, *matching])


async def plans_without(
    context: Context, threads: Iterable[ThreadRecord]
) -> list[FamilyPlan]:
    """What else goes with some threads."""
    return [
        plan
        for number, theirs in _by_family(threads).items()
        if (plan := await _without(context, number, theirs))
    ]


async def _without(
    context: Context, family: int, threads: Sequence[ThreadRecord]
) -> FamilyPlan | None:
    """What goes with some threads while others of the family stay."""
    names = {thread.id for thread in threads}
    page = await context.backend.scan(Threads(family=family, every=True))
    staying = [t for t in page if t.deleted_at is None and t.id not in names]
    if not staying:
        return None
    checkpoints = await _checkpoints(context, family)
    return plan_removal(family, checkpoints, _unneeded(staying, checkpoints))


async def delete(context: Context, thread: str, reference: Reference | None) -> int:
    """Delete a thread, or one checkpoint of it."""
    if reference is None:
        return await delete_threads(context, [thread])
    return await delete_checkpoint(context, thread, reference)


async def delete_checkpoint(context: Context, thread: str, reference: Reference) -> int:
    """Delete one checkpoint; its children get its parent, a head moves back to it."""

    async def attempt() -> int:
        try:
            record = await context.get_thread(thread)
            doomed = await resolve(context, thread, reference)
        except NotFound as missing:
            if missing.code == NotFound.default_code:
                return 0
            raise
        others = await context.backend.scan(Threads(family=record.family))
        _refuse_inherited(record, others, doomed)
        _refuse_foreign_heads(thread, others, [doomed])
        checkpoints = await _checkpoints(context, record.family)
        plan = plan_removal(record.family, checkpoints, [doomed])
        if record.head is None or doomed.id != record.head.id:
            return await _remove(context, plan)
        parent = next((c for c in checkpoints if c.id == doomed.parent), None)
        if parent is None:
            raise Conflict(
                f"{doomed.id!r} is the only checkpoint of thread {thread!r};"
                " delete() the thread instead",
                code="last_checkpoint",
                thread=thread,
            )
        return await _remove(context, plan, _turned(context, record, parent))

    return await until_current(attempt)


async def rewind_hard(
    context: Context, thread: str, reference: Reference
) -> Checkpoint:
    """Move the head back and delete what was saved in the thread after it."""
    target = await resolve(context, thread, reference)

    async def attempt() -> Checkpoint:
        record = await context.get_thread(thread)
        checkpoints = await _checkpoints(context, record.family)
        others = await context.backend.scan(Threads(family=record.family))
        roots = _roots(other for other in others if other.id != thread)
        foreign = [c.id for c in checkpoints if c.thread_number != record.number]
        needed = ancestry(checkpoints, [*roots, *foreign, target.id])
        doomed = [
            c
            for c in checkpoints
            if c.thread_number == record.number
            and c.seq > target.seq
            and c.id not in needed
        ]
        plan = plan_removal(record.family, checkpoints, doomed)
        await _remove(context, plan, _turned(context, record, target))
        return target

    return await until_current(attempt)


def _turned(context: Context, record: ThreadRecord, target: Checkpoint) -> Write:
    return Write(
        thread=record.id,
        at=context.clock(),
        expect=record.head,
        turn=Turn("rewind", target),
    )


async def _remove(context: Context, plan: FamilyPlan, *first: Write) -> int:
    for write in first:
        context.cache.take(write.thread)
    whole = Prune(at=context.clock(), first=first, families=(plan,))
    return (await context.backend.prune(whole)).checkpoints


def _refuse_inherited(
    record: ThreadRecord, others: Iterable[ThreadRecord], doomed: Checkpoint
) -> None:
    """What a fork shares with a living thread is that thread's to delete."""
    owners = {other.number for other in others} - {record.number}
    if doomed.thread_number in owners:
        raise Conflict(
            f"checkpoint {doomed.id!r} belongs to thread {doomed.thread!r};"
            " delete it there",
            code="foreign",
            thread=record.id,
        )


def _refuse_foreign_heads(
    thread: str, others: Iterable[ThreadRecord], doomed: Sequence[Checkpoint]
) -> None:
    gone = {checkpoint.id for checkpoint in doomed}
    for other in others:
        if other.id != thread and other.head is not None and other.head.id in gone:
            raise Conflict(
                f"checkpoint {other.head.id!r} is the head of thread {other.id!r};"
                " delete that thread first",
                code="in_use",
                thread=other.id,
            )


async def until_current(
    attempt: Callable[[], Awaitable[T]], *, again: int = MOST_REPEATS
) -> T:
    """Repeat what was planned on a store that has changed meanwhile."""
    damage = ""
    for _ in range(again):
        try:
            return await attempt()
        except Conflict as conflict:
            if conflict.code not in OVERTAKEN:
                raise
        except Corrupt as corrupt:
            # Perhaps what could not be read was only removed since.
            if corrupt.message == damage:
                raise
            damage = corrupt.message
    return await attempt()


async def _all_threads(context: Context) -> list[ThreadRecord]:
    return list(await context.backend.scan(Threads(every=True)))


async def _checkpoints(context: Context, family: int) -> list[Checkpoint]:
    return list(await context.backend.scan(Saves(family=family, oldest_first=True)))


def _by_family(threads: Iterable[ThreadRecord]) -> dict[int, list[ThreadRecord]]:
    families: dict[int, list[ThreadRecord]] = defaultdict(list)
    for thread in threads:
        families[thread.family].append(thread)
    return families
