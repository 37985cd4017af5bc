"""Calls that began and whose end was never recorded."""

from __future__ import annotations

from collections.abc import Iterable

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
    query = Entries(thread=thread, checkpoint=OF_THREAD, prefix=ledger.CALL)
    last: dict[str, Effect] = {}
    for effect in ledger.collected(_of_open(await context.backend.scan(query))):
        before = last.get(effect.key)
        if before is not None and before.status == "completed":
            continue
        if await line.holds(context, effect.checkpoint):
            last[effect.key] = effect
    return [effect for effect in last.values() if effect.status == "unknown"]


def _of_open(entries: Iterable[Entry]) -> list[Entry]:
    """The entries of the calls with an attempt that did not end.

    Told by the keys: only these are decoded and looked up, of however many there are.
    """
    named = [(_parts(entry.key), entry) for entry in entries]
    ended = {(attempt, key) for (attempt, when, key), _ in named if when == "end"}
    open_ = {key for (attempt, _, key), _ in named if (attempt, key) not in ended}
    return [entry for (_, _, key), entry in named if key in open_]


def _parts(key: str) -> tuple[str, str, str]:
    """The attempt, whether it begins or ends, and the key of the call."""
    attempt, _, rest = key.removeprefix(ledger.CALL).partition(":")
    when, _, call = rest.partition(":")
    return attempt, when, call
