"""The age of the ledger: what is old enough is forgotten."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from holdfast._engine.context import Context
from holdfast._engine.effects import ledger
from holdfast._engine.threads.anchors import anchor_of, reached, successors_in
from holdfast._engine.threads.journal_keys import ANCHOR, CALL, EFFECT, UNDO
from holdfast._engine.threads.load import load
from holdfast._engine.threads.pending import find_pending
from holdfast._messages.loose import fields_of, parts_of
from holdfast._messages.transcript import open_calls
from holdfast._port import FamilyEntries, Threads, Write
from holdfast._values.records import PIN, UNSET
from holdfast._values.reference import HEAD
from holdfast.effects import Effect, Place


async def expired(context: Context, family: int, before: int) -> list[Write]:
    """Writes that forget the effects of a family which are known and older.

    A call whose outcome is unknown waits for a decision, however old it is, and the
    result of one that has none in a transcript waits to be put there.
    """
    found = await ledger.effects_of_family(context, family)
    if not any(effect.at < before for effect in found):
        return []
    old = _old(found, before, await _waiting(context, family))
    if not old:
        return []
    keys: dict[str, list[str]] = defaultdict(list)
    for effect in old:
        keys[effect.thread] += _keys(effect)
    for thread, key in await _unneeded(context, family, old, found):
        keys[thread].append(key)
    for thread, key in await _indexed(context, family, {e.place for e in old}):
        keys[thread].append(key)
    at = context.clock()
    return [
        Write(thread=thread, at=at, expect=UNSET, forget=tuple(dict.fromkeys(gone)))
        for thread, gone in keys.items()
    ]


def _old(found: list[Effect], before: int, waiting: set[str]) -> list[Effect]:
    settled = {effect.settles for effect in found}
    staying = [
        effect
        for effect in found
        if effect.at >= before
        or effect.call_id in waiting
        or (effect.status == "unknown" and effect.place not in settled)
    ]
    # The attempts at a call stay together, since they are read one after the other, and
    # an effect stays as long as the call that took it over.
    calls = {(effect.thread, effect.key) for effect in staying}
    places = [place for e in staying for place in (e.replays, e.settles) if place]
    calls |= {(thread, key) for thread, key, _ in places}
    return [effect for effect in found if (effect.thread, effect.key) not in calls]


async def _waiting(context: Context, family: int) -> set[str]:
    """The ids of the calls that have no result in the transcripts of a family."""
    found: set[str] = set()
    query = Threads(family=family, without=PIN, every=True)
    for thread in await context.backend.scan(query):
        if thread.deleted_at is not None:
            continue
        state = await load(context, thread.id, HEAD) if thread.head else None
        messages = parts_of(fields_of(state).get("messages"))
        for part in (await find_pending(context, thread)).parts:
            messages[part.at :] = part.messages
        found |= {call.id for call in open_calls(messages)}
    return found


def _keys(effect: Effect) -> list[str]:
    number, key = effect.attempt, effect.key
    whens = ("begin", "end")
    return [
        *(f"{CALL}{number}:{when}:{key}" for when in whens),
        *(f"{UNDO}{number}:{when}:{key}" for when in whens),
    ]


async def _unneeded(
    context: Context, family: int, old: list[Effect], found: list[Effect]
) -> list[tuple[str, str]]:
    """The threads and keys of entries that name successors for old effects only."""
    query = FamilyEntries(family=family, prefix=ANCHOR)
    entries = await context.backend.scan(query)
    later = successors_in(entries)

    def anchors(effects: Iterable[Effect]) -> set[str]:
        own = {effect.checkpoint for effect in effects if effect.checkpoint}
        return {id_ for anchor in own for id_ in reached(anchor, later)}

    gone = anchors(old) - anchors(effect for effect in found if effect not in old)
    return [(e.thread, e.key) for e in entries if anchor_of(e.key) in gone]


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
