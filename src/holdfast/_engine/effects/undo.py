"""Undoing effects that were left behind, each journaled before and after."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from holdfast._engine.context import Context
from holdfast._engine.effects import ledger
from holdfast._engine.effects.line import Line, line_of
from holdfast._engine.threads import journal, pending
from holdfast._port import NEW_THREAD, Threads
from holdfast._values.records import PIN
from holdfast.effects import Effect, Place


async def to_undo(context: Context, thread: str, line: Line) -> list[Effect]:
    """The effects that no line of the family has any more, newest first.

    An effect that another fork still has is in force there, and stays.
    """
    record = await context.get_thread(thread)
    found = await ledger.effects_of_family(context, record.family)
    query = Threads(family=record.family, without=PIN)
    others = [t for t in await context.backend.scan(query) if t.id != thread]
    lines = [line, *[await line_of(context, other, other.head) for other in others]]
    held: set[Place] = set()
    for each in lines:
        held |= await ledger.held_by(context, found, each)
    in_force = [e for e in found if ledger.is_in_force(e, found)]
    return [e for e in reversed(in_force) if e.place not in held]


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
    return f"{ledger.UNDO}{effect.attempt}:{when}:{effect.key}"


async def _record(
    context: Context, effect: Effect, when: str, value: Mapping[str, object]
) -> Mapping[str, object]:
    key = _key(effect, when)
    place = journal.JournalPlace(
        effect.thread, NEW_THREAD, checkpoint=None, replace=False
    )
    entries = place.entries(context, {key: value})
    in_force = await journal.record(context, place, entries)
    return cast("dict[str, object]", in_force[key])
