"""Recording how a call ended whose program did not live to record it."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast._engine.context import Context
from holdfast._engine.effects import ledger
from holdfast._engine.effects.calls import LONGEST_ERROR
from holdfast._engine.threads import journal
from holdfast._port import NEW_THREAD
from holdfast.effects import Effect
from holdfast.errors import Conflict, NotFound


class CallEnd(msgspec.Struct, frozen=True):
    """The end of a call: a result, or an error."""

    result: object = None
    error: str | None = None

    def entry(self) -> dict[str, Any]:
        """The value of its journal entry."""
        if self.error is not None:
            return {"status": ledger.FAILED, "error": self.error[:LONGEST_ERROR]}
        return {"status": ledger.COMPLETED, "result": self.result}


async def settle(context: Context, thread: str, call_id: str, end: CallEnd) -> Effect:
    """Record the end of a call on a thread's line that began and did not end.

    `Conflict` if its end is known, also if another caller records it at the same time.
    """
    made = await ledger.effects(context, thread)
    mine = [effect for effect in made if effect.call_id == call_id]
    if not mine:
        text = f"thread {thread!r} has no call {call_id!r}; see effects()"
        raise NotFound(text, thread=thread, reference=call_id)
    effect = mine[-1]
    if effect.status != "unknown":
        raise _ended(effect)
    where = journal.JournalPlace(effect.thread, NEW_THREAD, None, replace=False)
    key = ledger.end_key(effect.key, effect.attempt)
    entries = where.own_entries(context, {key: end.entry()})
    in_force = await journal.record(context, where, entries)
    if in_force[key] != entries[0].value:
        raise _ended(effect)
    return effect


def _ended(effect: Effect) -> Conflict:
    return Conflict(
        f"the end of call {effect.call_id!r} is recorded already; see effects()",
        code="call_ended",
        thread=effect.thread,
    )
