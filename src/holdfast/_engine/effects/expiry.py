"""The age of the ledger: what is old enough is forgotten."""

from __future__ import annotations

from collections import defaultdict

from holdfast._engine.context import Context
from holdfast._engine.effects import ledger
from holdfast._engine.threads.anchors import ANCHOR, EFFECT
from holdfast._port import FamilyEntries, Write
from holdfast._values.records import UNSET
from holdfast.effects import Effect, Place


async def expired(context: Context, family: int, before: int) -> list[Write]:
    """Writes that forget the effects of a family which are known and older.

    A call whose outcome is unknown waits for a decision, however old it is.
    """
    found = await ledger.effects_of_family(context, family)
    old = [e for e in found if e.at < before and e.status != "unknown"]
    if not old:
        return []
    staying = {(e.thread, e.checkpoint) for e in found if e not in old}
    keys: dict[str, list[str]] = defaultdict(list)
    for effect in old:
        keys[effect.thread] += _keys(effect)
        if effect.checkpoint and (effect.thread, effect.checkpoint) not in staying:
            keys[effect.thread].append(ANCHOR + effect.checkpoint)
    for thread, key in await _indexed(context, family, {e.place for e in old}):
        keys[thread].append(key)
    at = context.clock()
    return [
        Write(thread=thread, at=at, expect=UNSET, forget=tuple(dict.fromkeys(gone)))
        for thread, gone in keys.items()
    ]


def _keys(effect: Effect) -> list[str]:
    number, key = effect.attempt, effect.key
    whens = ("begin", "end")
    return [
        *(f"{ledger.CALL}{number}:{when}:{key}" for when in whens),
        *(f"{ledger.UNDO}{number}:{when}:{key}" for when in whens),
    ]


async def _indexed(
    context: Context, family: int, places: set[Place]
) -> list[tuple[str, str]]:
    """The threads and keys of the index lines of effects."""
    query = FamilyEntries(family=family, prefix=EFFECT)
    return [
        (entry.thread, entry.key)
        for entry in await context.backend.scan(query)
        if ledger.indexed_place(entry) in places
    ]
