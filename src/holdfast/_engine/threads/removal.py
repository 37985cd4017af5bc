"""Removing checkpoints and threads, with the segments that only they use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from holdfast._engine.context import Context
from holdfast._engine.threads.anchors import anchors_moved
from holdfast._engine.threads.grants import handed_over
from holdfast._engine.threads.lineage import Reference, resolve, resolve_in
from holdfast._port import FamilyPlan, Prune, Pruned, Saves, Threads, Turn, Write
from holdfast._port.removal import ancestry, plan_removal
from holdfast._values.records import (
    PIN,
    UNSET,
    Checkpoint,
    ThreadRecord,
    Unset,
    checked_stored_name,
)
from holdfast.errors import Conflict, Corrupt, NotFound, Unstorable

T = TypeVar("T")

# Each repeat means that another writer came first, so the store as a whole goes on. Two
# that write to a folder without a pause overtook a restore more than 20 times.
MOST_REPEATS = 100
# The codes of a `Conflict` with another writer whose change came first.
OVERTAKEN = {"plan_stale", "head_moved", "thread_deleted"}


async def carry_out(context: Context, plan: Prune) -> Pruned:
    """Prune, and record what has to be known of what is removed."""
    kept: list[Write] = []
    if not plan.dry_run:
        for family in plan.families:
            kept += await anchors_moved(context, family)
        for number, threads in by_family(plan.threads).items():
            begun = (*plan.first, *plan.then)
            kept += await handed_over(context, number, threads, begun)
    # A write to a thread that is dropped would bring it back.
    dropped = {thread.id for thread in plan.threads}
    then = (*plan.then, *(write for write in kept if write.thread not in dropped))
    return await context.backend.prune(replace(plan, then=then))


async def delete_threads(context: Context, names: Iterable[str]) -> int:
    """Delete threads with what only they use; returns how many there were."""
    wanted = set(names)

    async def attempt() -> int:
        found = [t for n in sorted(wanted) if (t := await context.find_thread(n))]
        return await _drop(context, found)

    return await until_current(attempt)


async def delete_expected(
    context: Context, thread: str, expect: Reference | None
) -> int:
    """Delete a thread if it has the head that is expected, ``None`` for no head."""

    # A refusal is returned: a conflict that is raised repeats the attempt.
    async def attempt() -> int | Conflict:
        found = await context.find_thread(thread)
        if found is None or not await _is_at(context, found, expect):
            return _not_at(thread, expect, found)
        return await _drop(context, [found])

    outcome = await until_current(attempt)
    if isinstance(outcome, Conflict):
        raise outcome
    return outcome


async def _is_at(
    context: Context, record: ThreadRecord, expect: Reference | None
) -> bool:
    if expect is None or record.head is None:
        return expect is record.head
    if not isinstance(expect, Checkpoint):
        expect = await resolve_in(context, record, expect)
    # A number can mean another checkpoint after the files of a folder were replaced.
    head = record.head
    return (head.seq, head.sha256) == (expect.seq, expect.sha256)


def _not_at(
    thread: str, expect: Reference | None, found: ThreadRecord | None
) -> Conflict:
    state = "has moved on" if found else "does not exist"
    return Conflict(
        f"thread {thread!r} {state}; load it and decide again",
        code="head_moved" if found else "thread_missing",
        thread=thread,
        expected=expect.id if isinstance(expect, Checkpoint) else expect,
        found=found.head if found else None,
    )


async def _drop(context: Context, threads: Sequence[ThreadRecord]) -> int:
    """Delete threads as they were found."""
    if not threads:
        return 0
    plans = await plans_without(context, threads)
    whole = Prune(at=context.clock(), threads=tuple(threads), families=tuple(plans))
    return (await carry_out(context, whole)).threads


async def delete_matching(
    context: Context,
    names: Sequence[str],
    *,
    owner: str | None,
    agent: str | None,
    kind: str | None,
    prefix: str | None,
) -> int:
    """Delete the named threads, and the threads that match all of the filters."""
    if (owner, agent, kind, prefix) == (None, None, None, None):
        if not names:
            text = "name threads, or an owner, agent, kind or prefix"
            raise Unstorable("delete", text)
        return await delete_threads(context, map(checked_stored_name, names))
    if kind == PIN:
        text = "pins go with their checkpoints: agents.delete_checkpoint()"
        raise Unstorable("delete", text)
    query = Threads(owner=owner, agent=agent, kind=kind, prefix=prefix, every=True)
    matching = [t.id for t in await context.backend.scan(query) if t.deleted_at is None]
    return await delete_threads(context, [*map(checked_stored_name, names), *matching])


async def plans_without(
    context: Context, threads: Iterable[ThreadRecord]
) -> list[FamilyPlan]:
    """The plans for the rest of each family when some threads are deleted."""
    return [
        plan
        for number, theirs in by_family(threads).items()
        if (plan := await _without(context, number, theirs))
    ]


async def _without(
    context: Context, family: int, threads: Sequence[ThreadRecord]
) -> FamilyPlan | None:
    """The removal from a family when some of its threads are deleted.

    ``None`` if no thread stays: then the backend drops the whole family.
    """
    names = {thread.id for thread in threads}
    page = await context.backend.scan(Threads(family=family, every=True))
    staying = [t for t in page if t.deleted_at is None and t.id not in names]
    if not staying:
        return None
    checkpoints = await checkpoints_of(context, family)
    return plan_removal(family, checkpoints, unneeded(staying, checkpoints))


async def delete(
    context: Context,
    thread: str,
    reference: Reference | None,
    expect: Reference | Unset | None = UNSET,
) -> int:
    """Delete a thread, or one checkpoint of it."""
    if isinstance(expect, Unset):
        if reference is None:
            return await delete_threads(context, [thread])
        return await delete_checkpoint(context, thread, reference)
    if reference is not None:
        raise Unstorable("expect", "goes with the whole thread; leave the other out")
    return await delete_expected(context, thread, expect)


async def delete_checkpoint(context: Context, thread: str, reference: Reference) -> int:
    """Delete one checkpoint; its parent becomes the parent of its children."""

    async def attempt() -> int:
        try:
            record = await context.get_thread(thread)
            doomed = await resolve_in(context, record, reference)
        except NotFound as missing:
            if missing.code == NotFound.default_code:
                return 0
            raise
        others = await context.backend.scan(Threads(family=record.family))
        _refuse_inherited(record, others, doomed)
        _refuse_foreign_heads(thread, others, [doomed])
        checkpoints = await checkpoints_of(context, record.family)
        by_id = {checkpoint.id: checkpoint for checkpoint in checkpoints}
        # Others may have removed it, or its parent, since it was looked up.
        doomed = by_id.get(doomed.id, doomed)
        parent = by_id.get(doomed.parent or "")
        if doomed.id not in by_id or (doomed.parent and parent is None):
            raise Conflict(f"{doomed.id!r} was changed meanwhile", code="plan_stale")
        plan = plan_removal(record.family, checkpoints, [doomed])
        if record.head is None or doomed.id != record.head.id:
            return await _remove(context, plan)
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
        checkpoints = await checkpoints_of(context, record.family)
        others = await context.backend.scan(Threads(family=record.family))
        roots = roots_of(other for other in others if other.id != thread)
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
    try:
        return (await carry_out(context, whole)).checkpoints
    except NotFound as missing:
        # The target existed when the plan was made, so another writer removed it:
        # retry.
        raise Conflict(missing.message, code="plan_stale") from missing


def _refuse_inherited(
    record: ThreadRecord, others: Iterable[ThreadRecord], doomed: Checkpoint
) -> None:
    """Refuse a checkpoint that a fork shares with a thread that still exists."""
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
    """Repeat an attempt whose plan was made on a state that another writer changed."""
    damage = ""
    for _ in range(again):
        try:
            return await attempt()
        except Conflict as conflict:
            if conflict.code not in OVERTAKEN:
                raise
        except Corrupt as corrupt:
            # What could not be read may have been removed meanwhile.
            if corrupt.message == damage:
                raise
            damage = corrupt.message
    return await attempt()


def unneeded(
    staying: Sequence[ThreadRecord], checkpoints: Sequence[Checkpoint]
) -> list[Checkpoint]:
    """Checkpoints of deleted threads that no staying thread descends from."""
    numbers = {thread.number for thread in staying}
    own = [c.id for c in checkpoints if c.thread_number in numbers]
    needed = ancestry(checkpoints, [*own, *roots_of(staying)])
    return [checkpoint for checkpoint in checkpoints if checkpoint.id not in needed]


def roots_of(threads: Iterable[ThreadRecord]) -> list[str]:
    """The checkpoints from which threads need their lines: heads and fork points."""
    found: list[str] = []
    for thread in threads:
        if thread.head is not None:
            found.append(thread.head.id)
        if thread.forked_from is not None:
            found.append(thread.forked_from.checkpoint)
    return found


async def checkpoints_of(context: Context, family: int) -> list[Checkpoint]:
    """Every checkpoint of a family, oldest first."""
    return list(await context.backend.scan(Saves(family=family, oldest_first=True)))


def by_family(threads: Iterable[ThreadRecord]) -> dict[int, list[ThreadRecord]]:
    """Threads by the number of their family."""
    families: dict[int, list[ThreadRecord]] = defaultdict(list)
    for thread in threads:
        families[thread.family].append(thread)
    return families
