"""Removing checkpoints and threads, with the segments that only they use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from operator import gt
from typing import TypeVar

from msgspec.structs import replace

from holdfast._engine.context import Context
from holdfast._engine.threads.anchors import anchors_moved
from holdfast._engine.threads.grants import handed_over
from holdfast._engine.threads.lineage import Reference, resolve, resolve_in
from holdfast._engine.threads.removal_family import (
    Family,
    SmallFamily,
    living,
    read_family,
    saves_of,
)
from holdfast._port import (
    FamilyPlan,
    Outlines,
    Prune,
    Pruned,
    ThreadKey,
    Threads,
    Turn,
    Write,
)
from holdfast._port.removal import NOWHERE, overtaken
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
    keys = [ThreadKey(name) for name in sorted(set(names))]

    async def attempt() -> int:
        found = [thread for thread in await context.backend.read(keys) if thread]
        for thread in found:
            if thread.deleted_at is not None:
                await _sweep_again(context, thread)
        return await drop(context, living(found)) if living(found) else 0

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
        return await drop(context, [found])

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


async def drop(
    context: Context,
    threads: Sequence[ThreadRecord],
    families: Sequence[FamilyPlan] = (),
    first: tuple[Write, ...] = (),
) -> int:
    """Delete threads as they were found, with what only they use; returns how many.

    All in one transaction, with ``families`` and ``first``. Only of a large family the
    checkpoints are removed afterwards, in parts: if that is interrupted, `delete` or
    `prune` goes on.
    """
    plans: list[FamilyPlan] = []
    large: list[int] = []
    for number, theirs in by_family(threads).items():
        staying = await _staying(context, number, theirs)
        saves = await saves_of(context, number) if staying else ()
        if saves is None:
            large.append(number)
        elif saves:
            family = await Family.read(number, SmallFamily(saves))
            parts = family.divided(await family.unneeded(staying))
            plans += [plan async for plan in family.plans(parts)]
    whole = Prune(
        at=context.clock(),
        first=first,
        threads=tuple(threads),
        families=(*families, *plans),
    )
    dropped = await carry_out(context, whole)
    for number in large:
        await until_current(partial(sweep, context, number))
    return dropped.threads


async def _staying(
    context: Context, family: int, threads: Sequence[ThreadRecord]
) -> list[ThreadRecord]:
    """The living threads of a family without some of them."""
    names = {thread.id for thread in threads}
    page = await context.backend.scan(Threads(family=family, every=True))
    return [thread for thread in living(page) if thread.id not in names]


async def sweep(context: Context, number: int) -> None:
    """Remove what deleted threads have left in a family."""
    family, threads = await read_family(context, number)
    parts = family.divided(await family.unneeded(living(threads)))
    async for plan in family.plans(parts):
        await carry_out(context, Prune(at=context.clock(), families=(plan,)))


async def _sweep_again(context: Context, tombstone: ThreadRecord) -> None:
    """Finish a deletion from a large family, if it was interrupted."""
    family, number = tombstone.family, tombstone.number
    own = Outlines(family=family, thread=number, limit=1)
    if await context.backend.scan(own):
        await sweep(context, family)


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


async def needs_all(context: Context, thread: ThreadRecord) -> bool:
    """True if no checkpoint would be removed with a thread: others need them all."""
    family, threads = await read_family(context, thread.family)
    staying = [other for other in living(threads) if other.id != thread.id]
    return bool(staying) and not any(await family.unneeded(staying))


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
        family, threads = await read_family(context, record.family)
        _refuse_inherited(record, living(threads), doomed)
        _refuse_foreign_heads(thread, living(threads), doomed)
        place = family.tree.place_of(doomed.seq)
        # Others may have removed it, or its parent, since it was looked up.
        if place == NOWHERE:
            raise overtaken()
        [plan] = [plan async for plan in family.plans([[place]])]
        if [checkpoint.id for checkpoint in plan.checkpoints] != [doomed.id]:
            raise overtaken()
        if record.head is None or doomed.id != record.head.id:
            return (await _remove(context, plan)).checkpoints
        above = family.tree.parents[place]
        if above == NOWHERE:
            raise Conflict(
                f"{doomed.id!r} is the only checkpoint of thread {thread!r};"
                " delete() the thread instead",
                code="last_checkpoint",
                thread=thread,
            )
        [parent] = await family.source.records([family.tree.seqs[above]])
        turned = _turned(context, record, parent)
        return (await _remove(context, plan, turned)).checkpoints

    return await until_current(attempt)


async def rewind_hard(
    context: Context, thread: str, reference: Reference
) -> Checkpoint:
    """Move the head back and delete what was saved in the thread after it."""
    target = await resolve(context, thread, reference)
    # Once the head has moved, the number of the last checkpoint that goes: others may
    # save on the target before the last part is removed.
    last: int | None = None

    async def attempt() -> Checkpoint:
        nonlocal last
        record = await context.get_thread(thread)
        family, threads = await read_family(context, record.family)
        tree = family.tree
        others = [t for t in living(threads) if t.id != thread or last is not None]
        roots = await family.roots(others)
        foreign = (
            n for n, number in enumerate(tree.threads) if number != record.number
        )
        needed = tree.ancestry(chain(roots, foreign, tree.places_of([target.seq])))
        end = tree.seqs[-1] if last is None else last
        later = (target.seq < seq <= end for seq in tree.seqs)
        gone = bytearray(map(gt, later, needed))
        first = (_turned(context, record, target),) if last is None else ()
        async for plan in family.plans(family.divided(gone) or [[]]):
            await _remove(context, plan, *first)
            last, first = end, ()
        return target

    return await until_current(attempt)


def _turned(context: Context, record: ThreadRecord, target: Checkpoint) -> Write:
    return Write(
        thread=record.id,
        at=context.clock(),
        expect=record.head,
        turn=Turn("rewind", target),
    )


async def _remove(context: Context, plan: FamilyPlan, *first: Write) -> Pruned:
    for write in first:
        context.cache.take(write.thread)
    whole = Prune(at=context.clock(), first=first, families=(plan,))
    try:
        return await carry_out(context, whole)
    except NotFound as missing:
        # The target existed when this was planned, so another writer removed it.
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
    thread: str, others: Iterable[ThreadRecord], doomed: Checkpoint
) -> None:
    for other in others:
        if other.id != thread and other.head is not None and other.head.id == doomed.id:
            raise Conflict(
                f"checkpoint {doomed.id!r} is the head of thread {other.id!r};"
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


def by_family(threads: Iterable[ThreadRecord]) -> dict[int, list[ThreadRecord]]:
    """Threads by the number of their family."""
    families: dict[int, list[ThreadRecord]] = defaultdict(list)
    for thread in threads:
        families[thread.family].append(thread)
    return families
