"""Calls that began and whose end was never recorded."""

from __future__ import annotations

from holdfast._engine.context import Context
from holdfast._engine.effects import ledger
from holdfast._engine.effects.line import Line
from holdfast._engine.threads.journal import OF_THREAD
from holdfast._port import Entries
from holdfast.effects import Effect


async def interrupted(context: Context, thread: str, line: Line) -> list[Effect]:
    """Those of a thread that are on a line, oldest first, each call once.

    A call that has been made again, and has ended, is not among them.
    """
    query = Entries(thread=thread, checkpoint=OF_THREAD, prefix=ledger.CALL)
    last: dict[str, Effect] = {}
    for effect in ledger.collected(await context.backend.scan(query)):
        before = last.get(effect.key)
        if before is not None and before.status == "completed":
            continue
        if await line.has(context, effect.key, effect.checkpoint):
            last[effect.key] = effect
    return [effect for effect in last.values() if effect.status == "unknown"]
