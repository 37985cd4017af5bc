"""Calls that began and whose end was never recorded."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast._engine.context import Context
from holdfast._engine.effects import ledger
from holdfast._engine.effects.line import Line
from holdfast._engine.threads.journal import OF_THREAD
from holdfast._engine.threads.journal_keys import CALL, UNDO
from holdfast._port import Entries, FamilyEntries
from holdfast._values.records import Entry
from holdfast.effects import Effect


async def interrupted(
    context: Context, thread: str, line: Line, *, family: int | None = None
) -> list[Effect]:
    """The interrupted calls of a thread on a line, oldest first, each call once.

    With a ``family`` also those that other threads of it began, such as the origin of
    a fork. A call that has been made again, and has ended, is not among them.
    """
    calls = await _entries(context, thread, family, CALL)
    open_ = _open_keys(calls)
    if not open_:
        return []
    entries = [*calls, *await _entries(context, thread, family, UNDO)]
    last: dict[str, Effect] = {}
    for effect in ledger.collected(e for e in entries if _parts(e.key)[2] in open_):
        before = last.get(effect.key)
        if before and before.status == "completed" and not before.undone:
            continue
        if await line.has(context, effect):
            last[effect.key] = effect
    return [effect for effect in last.values() if effect.status == "unknown"]


async def _entries(
    context: Context, thread: str, family: int | None, prefix: str
) -> Iterable[Entry]:
    if family is not None:
        return await context.backend.scan(FamilyEntries(family=family, prefix=prefix))
    query = Entries(thread=thread, checkpoint=OF_THREAD, prefix=prefix)
    return await context.backend.scan(query)


def _open_keys(calls: Iterable[Entry]) -> set[str]:
    """The keys of the calls with an attempt that did not end.

    Told by the keys of their entries: only these calls are decoded and looked up, of
    however many there are.
    """
    named = [(entry.thread, *_parts(entry.key)) for entry in calls]
    ended = {(t, attempt, key) for t, attempt, when, key in named if when == "end"}
    return {key for t, attempt, _, key in named if (t, attempt, key) not in ended}


def _parts(key: str) -> tuple[str, str, str]:
    """The attempt, whether it begins or ends, and the key of the call."""
    _, attempt, when, call = (*key.split(":", 3), "", "", "")[:4]
    return attempt, when, call
