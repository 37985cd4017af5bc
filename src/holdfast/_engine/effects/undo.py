"""Undoing effects that were left behind, each journaled before and after."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from holdfast._engine.context import Context
from holdfast._engine.effects import ledger
from holdfast._engine.effects.line import Line
from holdfast._engine.effects.lines import line_of
from holdfast._engine.threads import journal, pending
from holdfast._engine.threads.journal_keys import UNDO
from holdfast._port import NEW_THREAD, Threads
from holdfast._values.records import PIN
from holdfast.effects import Compensation, Declaration, Effect, Place

Run: TypeAlias = Callable[..., Awaitable[Any]]
Find: TypeAlias = Callable[[], Awaitable[list[Effect]]]
Finish: TypeAlias = Callable[[Any], Awaitable[Any]]


async def to_undo(context: Context, thread: str, *own: Line) -> list[Effect]:
    """The effects that no line of the family has any more, newest first.

    ``own`` are the lines of the thread itself. An effect that another fork still has is
    in force there, and stays.
    """
    record = await context.get_thread(thread)
    found = await ledger.effects_of_family(context, record.family)
    query = Threads(family=record.family, without=PIN)
    others = [t for t in await context.backend.scan(query) if t.id != thread]
    lines = [*own, *[await line_of(context, other, other.head) for other in others]]
    held: set[Place] = set()
    for each in lines:
        held |= await ledger.held_by(context, found, each)
    free = [e for e in found if e.place not in held and not e.replays]
    return [e for e in reversed(free) if ledger.is_in_force(e, found)]


async def to_undo_beside(context: Context, thread: str, line: Line) -> list[Effect]:
    """Like `to_undo`, for a line in memory, which other workers may have gone on from.

    Effects on the stored line of the thread are in force as well.
    """
    record = await context.get_thread(thread)
    stored = await line_of(context, record, record.head)
    return await to_undo(context, thread, line, stored)


async def undo_all(
    find: Find,
    declared: Callable[[str], Declaration],
    run: Run,
    finish: Finish,
) -> Compensation:
    """Undo effects by what their tools declare, each journaled before and after.

    ``find`` gives the effects to be undone, ``declared`` the declaration of a tool by
    its name, ``run`` starts an operation, and ``finish`` gives the result of a function
    that may be async.
    """
    undone: list[Effect] = []
    kept: list[Effect] = []
    unknown: list[Effect] = []
    for effect in await find():
        reverse = declared(effect.tool).undo
        if reverse is None:
            kept.append(effect)
        elif effect.status == "unknown" or not await run(begin, effect):
            unknown.append(effect)
        elif all(effect.place != still.place for still in await find()):
            # Another worker has taken it over since, or has gone forward to it.
            await run(abandon, effect)
        else:
            await _undo(effect, reverse, run, finish)
            undone.append(effect)
    return Compensation(tuple(undone), tuple(kept), tuple(unknown))


async def _undo(
    effect: Effect, reverse: Callable[[Effect], Any], run: Run, finish: Finish
) -> None:
    try:
        await finish(reverse(effect))
    except Exception:
        await run(abandon, effect)
        raise
    await run(complete, effect)


async def begin(context: Context, effect: Effect) -> bool:
    """Record that an effect is being undone; false if that was begun before."""
    token = context.new_id()
    in_force = await _record(context, effect, "begin", {"token": token})
    return in_force["token"] == token


async def complete(context: Context, effect: Effect) -> None:
    """Record that an effect was undone."""
    await _record(context, effect, "end", {"status": ledger.COMPLETED})


async def abandon(context: Context, effect: Effect) -> None:
    """Forget that the undoing began: it raised, and may be tried again."""
    await pending.forget(context, effect.thread, (_key(effect, "begin"),))


def _key(effect: Effect, when: str) -> str:
    return f"{UNDO}{effect.attempt}:{when}:{effect.key}"


async def _record(
    context: Context, effect: Effect, when: str, value: Mapping[str, object]
) -> Mapping[str, object]:
    key = _key(effect, when)
    place = journal.JournalPlace(
        effect.thread, NEW_THREAD, checkpoint=None, replace=False
    )
    entries = place.own_entries(context, {key: value})
    [in_force] = await journal.record_entries(context, place, entries)
    return ledger.fields_of_entry(in_force)
