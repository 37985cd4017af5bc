"""Calls that began and whose end was never recorded."""

from __future__ import annotations

from holdfast._engine.context import Context
from holdfast._engine.effects import ledger
from holdfast._engine.effects.line import Line
from holdfast._engine.threads.journal import OF_THREAD
from holdfast._port import Entries
from holdfast._values.records import Entry
from holdfast.effects import Effect


async def interrupted(context: Context, thread: str, line: Line) -> list[Effect]:
    """Those of a thread that are on a line, oldest first, each call once.

    A call that has been made again, and has ended, is not among them.
    """
    entries: list[Entry] = []
    for prefix in (ledger.CALL, ledger.UNDO):
        query = Entries(thread=thread, checkpoint=OF_THREAD, prefix=prefix)
        entries += await context.backend.scan(query)
    last: dict[str, Effect] = {}
    for effect in ledger.collected(entries):
        before = last.get(effect.key)
        if before and before.status == "completed" and not before.undone:
            continue
        if await line.holds(context, effect.checkpoint):
            last[effect.key] = effect
    return [effect for effect in last.values() if effect.status == "unknown"]
