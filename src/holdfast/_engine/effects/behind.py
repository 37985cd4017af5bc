"""The effects that a move of a head leaves behind, and the entries they stand in."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast._engine.context import Context
from holdfast._engine.effects import ledger
from holdfast._engine.effects.lines import line_at, line_of
from holdfast._engine.threads.journal import OF_THREAD
from holdfast._engine.threads.journal_keys import ANCHOR, CALL, EFFECT, PENDING, UNDO
from holdfast._port import Entries
from holdfast._values.records import Checkpoint, Entry, ThreadRecord
from holdfast.effects import Effect


async def left_behind_by(
    context: Context, record: ThreadRecord, target: Checkpoint | None
) -> list[Effect]:
    """The effects in force on a thread's line that a target's lacks, oldest first.

    Without a target the thread is removed: what it shares with others stays theirs.
    """
    found = await ledger.effects_of_family(context, record.family)
    if target is None:
        found = [effect for effect in found if effect.thread == record.id]
    now = await line_of(context, record, record.head)
    behind = await ledger.on_line(context, found, now)
    if target is not None:
        then = line_at(record, target)
        behind = await ledger.off_line(context, behind, then)
    return in_force(behind)


async def entries_of(context: Context, thread: str) -> list[Entry]:
    """The journal entries of a thread's calls, and those after its last checkpoint."""
    found: list[Entry] = []
    for prefix in (CALL, UNDO, EFFECT, ANCHOR, PENDING):
        query = Entries(thread=thread, checkpoint=OF_THREAD, prefix=prefix)
        found += await context.backend.scan(query)
    return found


def in_force(effects: Iterable[Effect]) -> list[Effect]:
    """The effects that happened, or may have happened, and were not undone.

    Of a call that was made again, because its outcome was unknown, only the last.
    """
    found = list(effects)
    return [effect for effect in found if ledger.is_in_force(effect, found)]
