"""A thread's family: the thread it was forked from, and all their forks."""

from __future__ import annotations

from heapq import nlargest

from holdfast._engine.context import Context
from holdfast._port import Saves, Threads
from holdfast._values.records import PIN, Checkpoint, Page, ThreadRecord, checked_limit

MANY = 50


async def family(context: Context, thread: str) -> Page[ThreadRecord]:
    """The threads that share checkpoints with a thread, last used first."""
    record = await context.get_thread(thread)
    found = await context.backend.scan(Threads(family=record.family))
    return Page(tuple(member for member in found if member.kind != PIN))


async def tree(
    context: Context, thread: str, before: int | None, limit: int | None
) -> Page[Checkpoint]:
    """The checkpoints of a whole family, newest first."""
    checked_limit(limit)
    record = await context.get_thread(thread)
    every = Saves(family=record.family, before=before, limit=limit)
    if limit is None:
        return await context.backend.scan(every)
    # The newest of a thread are found by an index, those of a family by sorting the
    # numbers of all. That takes as long as asking some dozens of threads.
    members = await context.backend.scan(Threads(family=record.family, every=True))
    names = [member.id for member in members if member.kind != PIN]
    if len({*names}) < len(names) or len(names) > MANY:
        # A deleted thread whose name is in use again cannot be queried by its name.
        return await context.backend.scan(every)
    found: list[Checkpoint] = []
    for name in names:
        saves = Saves(family=record.family, thread=name, before=before, limit=limit)
        found += await context.backend.scan(saves)
    newest = nlargest(limit, found, key=lambda checkpoint: checkpoint.seq)
    return Page(tuple(newest), newest[-1].seq if len(newest) == limit else None)
