"""Explorations: forks that try alternatives, recorded so that a new process goes on.

The journal of the thread has the plan and at the end all results; the journal of each
branch has its own. The branches are run by `_api.explore`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from holdfast._engine.context import Context
from holdfast._engine.threads.fork_point import common_ancestor
from holdfast._engine.threads.journal import (
    OF_THREAD,
    JournalPlace,
    encoded_entry,
    entry_as,
    find_entry,
    record,
)
from holdfast._engine.threads.load import load_any
from holdfast._engine.threads.moves import fork_writes
from holdfast._engine.threads.removal import delete_threads
from holdfast._port import NEW_THREAD, CheckpointKey, Mark, Turn, Write
from holdfast._values.records import UNSET, Checkpoint, Entry, ThreadRecord
from holdfast._values.scope_name import refuse_scoped
from holdfast._values.typed import prepare
from holdfast.diff import diff, summary
from holdfast.errors import Conflict, NotFound

Status: TypeAlias = Literal["running", "finished", "stopped", "failed"]

PLAN: Final = "explore:"
RESULT: Final = "explored"
NOT_ADOPTED: Final = "not-adopted"


class BranchResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a branch of an exploration, so far or at its end.

    ``status`` is ``finished``, ``stopped`` (its budget was used up, or another branch
    stopped it), ``failed`` or still ``running``; ``error`` says why. ``steps`` are the
    checkpoints since the fork, ``tokens`` what the program reported, ``differs`` names
    the values that changed, and ``head`` is the id of its last checkpoint.
    """

    thread: str
    number: int
    status: Status = "running"
    score: float | None = None
    steps: int = 0
    tokens: int = 0
    seconds: float = 0.0
    error: str | None = None
    head: str | None = None
    differs: str = ""


class ExplorationPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The beginning of an exploration: the head of its thread, and the branches.

    ``at`` is the id of that head, and ``step`` its step.
    """

    thread: str
    name: str
    at: str
    step: int
    branches: tuple[str, ...]

    @property
    def key(self) -> str:
        """The key in the journal of the thread."""
        return PLAN + self.name


class BranchState(msgspec.Struct, frozen=True):
    """The head of a branch, and the values that differ from where it began."""

    head: str
    steps: int
    differs: str


# --- beginning ------------------------------------------------------------------------


async def begin(
    context: Context, thread: str, name: str | None, n: int, effects: str
) -> ExplorationPlan:
    """Fork a thread ``n`` times, all or none, or find the exploration that did."""
    refuse_scoped(thread)
    while True:
        source, head = await context.get_thread(thread), await context.get_head(thread)
        found = await _find(context, head, thread, name)
        if isinstance(found, ExplorationPlan):
            return _same_size(found, n)
        plan = ExplorationPlan(
            thread=thread,
            name=found,
            at=head.id,
            step=head.step,
            branches=tuple(f"{thread}/{found}/{number}" for number in range(1, n + 1)),
        )
        try:
            await _commit(context, source, head, plan, effects)
        except Conflict as conflict:
            # Another process has begun the same one.
            if conflict.code != "entry_taken":
                raise
        else:
            return plan


async def _find(
    context: Context, head: Checkpoint, thread: str, name: str | None
) -> ExplorationPlan | str:
    """The exploration of a name, or the name that is free for a new one."""
    for candidate in _names(head) if name is None else (name,):
        entry = await find_entry(context, thread, PLAN + candidate)
        if entry is None:
            return candidate
        plan = entry_as(entry, ExplorationPlan)
        if name is not None or plan.at == head.id:
            return plan
    raise AssertionError("names do not end")


def _names(head: Checkpoint) -> Iterator[str]:
    """Names for explorations of a head; after a rewind, a step can be there again."""
    yield f"explore-{head.step}"
    number = 2
    while True:
        yield f"explore-{head.step}-{number}"
        number += 1


def _same_size(plan: ExplorationPlan, n: int) -> ExplorationPlan:
    if len(plan.branches) == n:
        return plan
    raise Conflict(
        f"the exploration {plan.name!r} was begun with {len(plan.branches)} branches,"
        f" not {n}; go on with as many, or give another name",
        code="exploration_differs",
        thread=plan.thread,
    )


async def _commit(
    context: Context,
    source: ThreadRecord,
    head: Checkpoint,
    plan: ExplorationPlan,
    effects: str,
) -> None:
    forks = [
        write
        for branch in plan.branches
        for write in await fork_writes(context, source, head, branch, effects)
    ]
    begun = _journal_write(context, plan.thread, plan.key, plan)
    first = msgspec.structs.replace(begun, expect=head, new_entries=True)
    await context.backend.commit([first, *forks])


def _journal_write(context: Context, thread: str, key: str, value: object) -> Write:
    now, data = context.clock(), encoded_entry(msgspec.to_builtins(value), key)
    entry = Entry(thread, OF_THREAD, key, data, now)
    return Write(thread=thread, at=now, expect=UNSET, entries=(entry,))


# --- results --------------------------------------------------------------------------


async def results(context: Context, plan: ExplorationPlan) -> list[BranchResult] | None:
    """The results of an exploration that has ended, best first; ``None`` if not."""
    entry = await find_entry(context, plan.thread, f"{plan.key}:results")
    return entry_as(entry, list[BranchResult]) if entry else None


async def result_of(context: Context, thread: str) -> BranchResult | None:
    """The result that a branch has recorded, ``None`` if the thread is no branch."""
    entry = await find_entry(context, thread, RESULT)
    return entry_as(entry, BranchResult) if entry else None


async def progress(context: Context, plan: ExplorationPlan) -> list[BranchResult]:
    """The recorded result of each branch, in their order."""
    return [
        await result_of(context, name) or BranchResult(thread=name, number=number)
        for number, name in enumerate(plan.branches, 1)
    ]


async def keep_result(context: Context, thread: str, result: BranchResult) -> None:
    """Record how far the branch of a thread has come, or how it ended."""
    where = JournalPlace(thread, NEW_THREAD, None, replace=True)
    entries = where.entries(context, {RESULT: msgspec.to_builtins(result)})
    await record(context, where, entries)


async def state_of_branch(context: Context, thread: str, at: str) -> BranchState:
    """The state of a branch, compared with the checkpoint it began at."""
    head = await context.get_head(thread)
    base = await _checkpoint(context, head, at)
    states = [await load_any(context, one) for one in (base, head)]
    return BranchState(head.id, head.step - base.step, summary(diff(*states)))


async def _checkpoint(context: Context, head: Checkpoint, id_: str) -> Checkpoint:
    [found] = await context.backend.read([CheckpointKey(head.family, id_)])
    if found is None:
        text = f"checkpoint {id_!r} was removed; begin another exploration"
        raise NotFound(text, thread=head.thread, reference=id_)
    return found


def ranked(found: Iterable[BranchResult]) -> list[BranchResult]:
    """Results by their scores, the highest first; those without one come last."""
    return sorted(
        found, key=lambda one: (one.score is None, -(one.score or 0), one.number)
    )


async def finish(
    context: Context,
    thread: str,
    plan: ExplorationPlan,
    found: Sequence[BranchResult],
    keep: int | None,
) -> list[BranchResult]:
    """Record the results, then delete the threads of all but the best ``keep``."""
    order = ranked(found)
    await context.backend.commit(
        [_journal_write(context, thread, f"{plan.key}:results", order)]
    )
    if keep is not None:
        await delete_threads(context, [result.thread for result in order[keep:]])
    return order


# --- adopting -------------------------------------------------------------------------


async def adopt(
    context: Context, thread: str, plan: ExplorationPlan, chosen: BranchResult
) -> Checkpoint:
    """Move the head of the thread to the head of a branch, and tag the others.

    `Conflict` unless the head is still the one that was explored.
    """
    record_, target = await _target(context, thread, chosen)
    head = record_.head
    if head is not None and head.id == target.id:
        return target
    if head is None or head.id != plan.at:
        raise Conflict(
            f"the head of thread {thread!r} is not the one that was explored any more;"
            f" merge the branch instead: thread.merge(store.thread({chosen.thread!r}))",
            code="head_moved",
            thread=thread,
            expected=plan.at,
            found=head,
        )
    context.cache.take(thread)
    now = context.clock()
    move = Write(thread=thread, at=now, expect=head, turn=Turn("rewind", target))
    others = [name for name in plan.branches if name != chosen.thread]
    await context.backend.commit([move, *await _tagged(context, others, now)])
    return target


async def _target(
    context: Context, thread: str, chosen: BranchResult
) -> tuple[ThreadRecord, Checkpoint]:
    record_ = await context.get_thread(thread)
    head = await context.get_head(thread)
    return record_, await _checkpoint(context, head, chosen.head or "")


async def _tagged(context: Context, branches: Iterable[str], now: int) -> list[Write]:
    """Writes that tag the heads that branches have saved themselves."""
    found = [await context.find_thread(name) for name in branches]
    return [
        Write(
            thread=branch.id,
            at=now,
            expect=UNSET,
            marks=(Mark(branch.head, add=(NOT_ADOPTED,)),),
        )
        for branch in found
        if branch and branch.head and branch.head.thread_number == branch.number
    ]


# --- comparing ------------------------------------------------------------------------


async def shared_by(
    context: Context, checkpoints: Sequence[Checkpoint]
) -> Checkpoint | None:
    """The newest checkpoint that is on the lines of all, ``None`` if there is none."""
    shared: Checkpoint | None = checkpoints[0]
    for checkpoint in checkpoints[1:]:
        if shared is not None:
            shared = await common_ancestor(context, shared, checkpoint)
    return shared


prepare(ExplorationPlan, BranchResult)
