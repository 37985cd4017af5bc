"""Changes of several threads in one transaction: all of them or none."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast._engine.context import Context
from holdfast._engine.threads.drafts import Draft, NextState
from holdfast._engine.threads.journal import OF_THREAD
from holdfast._engine.threads.lineage import Reference, resolve
from holdfast._engine.threads.save import Attempt, Options
from holdfast._port import Start, Write
from holdfast._values.manifest import Manifest
from holdfast._values.records import Checkpoint, Entry, Unset
from holdfast._values.scope_name import refuse_scoped
from holdfast.errors import Conflict


class PlannedSave(msgspec.Struct, frozen=True):
    """A save as a part of a transaction."""

    thread: str
    draft: Draft
    how: Options


class PlannedRecord(msgspec.Struct, frozen=True):
    """Entries for the journal of a thread, and the head that it must have.

    Without entries it only checks the head.
    """

    thread: str
    start: Start | None
    expect: Reference | Unset | None
    entries: tuple[tuple[str, bytes], ...] = ()


Planned = PlannedSave | PlannedRecord


async def transaction(
    context: Context, planned: Sequence[Planned]
) -> dict[str, Checkpoint]:
    """Carry out all that is planned; returns the new heads by thread.

    A save whose head was moved by another writer is planned again on the new head,
    unless it expects a certain one: then nothing is changed.
    """
    for one in planned:
        refuse_scoped(one.thread)
    others = [
        await _record(context, one) for one in planned if isinstance(one, PlannedRecord)
    ]
    saves = _Saves(context, [one for one in planned if isinstance(one, PlannedSave)])
    for attempt in saves.attempts.values():
        if attempt.parent is None:
            await attempt.find_parent()
    while saves.attempts or others:
        try:
            await saves.commit(others)
        except Conflict as conflict:
            await saves.settle(conflict)
        else:
            break
    if saves.made and context.after_save is not None:
        await context.after_save(context)
    return saves.made


async def _record(context: Context, planned: PlannedRecord) -> Write:
    expect, now = planned.expect, context.clock()
    if not isinstance(expect, Unset) and expect is not None:
        expect = await resolve(context, planned.thread, expect)
    return Write(
        thread=planned.thread,
        at=now,
        expect=expect,
        start=planned.start if planned.entries else None,
        entries=tuple(
            Entry(planned.thread, OF_THREAD, key, data, now)
            for key, data in planned.entries
        ),
    )


class _Saves:
    """The saves of a transaction, repeated until they are committed or refused."""

    def __init__(self, context: Context, planned: Sequence[PlannedSave]) -> None:
        self.context = context
        self.made: dict[str, Checkpoint] = {}
        self.attempts = {
            one.thread: Attempt(context, one.thread, one.draft, one.how)
            for one in planned
        }

    async def commit(self, others: Sequence[Write]) -> None:
        """Commit what is left, with other writes."""
        attempts = list(self.attempts.values())
        plans: list[tuple[NextState, Manifest]] = [await a.plan() for a in attempts]
        writes = [a.write(*plan) for a, plan in zip(attempts, plans, strict=True)]
        receipts = await self.context.backend.commit([*writes, *others])
        for attempt, write, receipt, plan in zip(
            attempts, writes, receipts[: len(writes)], plans, strict=True
        ):
            self.made[attempt.thread] = attempt.saved(write, receipt, *plan)

    async def settle(self, conflict: Conflict) -> None:
        """Prepare to commit again, or raise the conflict."""
        refused = self.attempts.get(conflict.thread or "")
        if refused is None:
            raise conflict
        for attempt in self.attempts.values():
            attempt.begin_again()
        repeated = await refused.settle(conflict)
        if repeated is not None:  # it was made before, under its id
            self.made[refused.thread] = repeated
            del self.attempts[refused.thread]
