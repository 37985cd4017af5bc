"""The ledger: every effect of a family, found by thread or by identity.

It consists of entries in the journals of the threads, so it outlives checkpoints and
goes wherever a family goes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final, Literal, Protocol

import msgspec
import orjson

from holdfast._engine.context import Context
from holdfast._engine.effects.line import Line
from holdfast._engine.effects.lines import line_at, line_of
from holdfast._engine.threads import journal
from holdfast._engine.threads.journal_keys import CALL, EFFECT, UNDO
from holdfast._engine.threads.lineage import Reference, resolve_in
from holdfast._messages.transcript import TranscriptCall
from holdfast._port import FamilyEntries
from holdfast._values import codec
from holdfast._values.arguments import checked_flag
from holdfast._values.records import EPOCH, Entry
from holdfast._values.reference import HEAD
from holdfast._values.typed import prepare
from holdfast.effects import Effect, Place, Status

COMPLETED: Final = "completed"
FAILED: Final = "failed"


class _Named(msgspec.Struct):
    thread: str
    key: str
    attempt: int


class _Index(msgspec.Struct, kw_only=True):
    """A line of the index by identity, as the journal has it."""

    anchor: str | None = None
    arguments: str
    in_items: bool = False
    replays: _Named | None = None
    settles: _Named | None = None


class _Begin(_Index, kw_only=True):
    """The entry that is made before a call."""

    id: str
    name: str
    token: str


class _End(msgspec.Struct):
    """The entry that is made after a call, or after its effect was undone."""

    status: Literal["completed", "failed"]
    error: str | None = None


class _Undo(msgspec.Struct):
    """The entry that is made before an effect is undone."""

    token: str


_FORMS: Final[dict[str, type[msgspec.Struct]]] = {
    "call:begin": _Begin,
    "call:end": _End,
    "undo:begin": _Undo,
    "undo:end": _End,
}
_ENTRY = re.compile(r"(call|undo):(\d+):(begin|end):(.*)", re.DOTALL)
_INDEX = re.compile(r"effect:[0-9a-f]{32}:(\d+):(.*)", re.DOTALL)


class IdentifiedCall(Protocol):
    """A call with its place in the journal and what it means."""

    @property
    def thread(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def call(self) -> TranscriptCall: ...
    @property
    def identity(self) -> str: ...


# --- keys -----------------------------------------------------------------------------


def begin_key(key: str, attempt: int) -> str:
    """The key of the entry that is made before a call."""
    return f"{CALL}{attempt}:begin:{key}"


def end_key(key: str, attempt: int) -> str:
    """The key of the entry that is made after a call."""
    return f"{CALL}{attempt}:end:{key}"


def effect_key(made: IdentifiedCall, attempt: int) -> str:
    """The key by which a call is found that means the same effect."""
    return f"{EFFECT}{made.identity}:{attempt}:{made.key}"


def fields_of_entry(entry: Entry) -> dict[str, Any]:
    """The fields of an entry of a call; `Corrupt` if it is not as it was made."""
    if entry.key.startswith(EFFECT):
        return journal.entry_fields(entry, _Index)
    matched = _ENTRY.fullmatch(entry.key)
    assert matched is not None
    return journal.entry_fields(entry, _FORMS[f"{matched[1]}:{matched[3]}"])


# --- listing --------------------------------------------------------------------------


async def effects_of_family(context: Context, family: int) -> list[Effect]:
    """All calls that the threads of a family made, oldest first."""
    scan = context.backend.scan
    entries = [
        *await scan(FamilyEntries(family=family, prefix=CALL)),
        *await scan(FamilyEntries(family=family, prefix=UNDO)),
    ]
    return collected(entries)


def collected(entries: Iterable[Entry]) -> list[Effect]:
    """Journal entries as effects, oldest first."""
    found: dict[tuple[str, str, int], dict[str, Entry]] = {}
    for entry in entries:
        matched = _ENTRY.fullmatch(entry.key)
        if matched:  # callers of earlier versions may have used other such keys
            what, attempt, when, key = matched.groups()
            place = (entry.thread, key, int(attempt))
            found.setdefault(place, {})[f"{what}:{when}"] = entry
    effects = [
        _effect(place, parts) for place, parts in found.items() if "call:begin" in parts
    ]
    return sorted(effects, key=lambda effect: effect.seq)


def _effect(place: tuple[str, str, int], parts: dict[str, Entry]) -> Effect:
    thread, key, attempt = place
    entry = parts["call:begin"]
    begun = fields_of_entry(entry)
    ended = _value(parts.get("call:end"))
    return Effect(
        thread=thread,
        call_id=begun["id"],
        tool=begun["name"],
        arguments=begun.get("given"),
        status=_status(ended),
        result=ended.get("result"),
        error=ended.get("error"),
        at=entry.recorded_at,
        checkpoint=begun.get("anchor"),
        in_items=begun.get("in_items", False),
        replays=place_in(begun, "replays"),
        settles=place_in(begun, "settles"),
        undone=_value(parts.get("undo:end")).get("status") == COMPLETED,
        key=key,
        attempt=attempt,
        seq=entry.seq,
    )


def place_in(value: dict[str, Any], name: str) -> Place | None:
    """The place of another effect that an entry names."""
    found = value.get(name)
    return (found["thread"], found["key"], found["attempt"]) if found else None


def named_place(name: str, place: Place | None) -> dict[str, Any]:
    """The inverse of `place_in`."""
    if place is None:
        return {}
    thread, key, attempt = place
    return {name: {"thread": thread, "key": key, "attempt": attempt}}


def _value(entry: Entry | None) -> dict[str, Any]:
    return fields_of_entry(entry) if entry else {}


def _status(ended: dict[str, Any]) -> Status:
    if not ended:
        return "unknown"
    return "completed" if ended["status"] == COMPLETED else "failed"


async def effects(
    context: Context,
    thread: str,
    at: Reference = HEAD,
    *,
    since: Reference | None = None,
    left_behind: bool = False,
) -> list[Effect]:
    """The effects on a thread's line, or those of its family that are not on it."""
    checked_flag(left_behind, "left_behind")
    record = await context.get_thread(thread)
    point = await resolve_in(context, record, at) if record.head else None
    line = await line_of(context, record, point)
    found = await effects_of_family(context, record.family)
    chosen = off_line if left_behind else on_line
    wanted = await chosen(context, found, line)
    if since is None:
        return wanted
    earlier = line_at(record, await resolve_in(context, record, since))
    return await off_line(context, wanted, earlier)


async def on_line(
    context: Context, effects: Iterable[Effect], line: Line
) -> list[Effect]:
    """The given effects that the line has."""
    return [e for e in effects if await line.has(context, e)]


async def off_line(
    context: Context, effects: Iterable[Effect], line: Line
) -> list[Effect]:
    """The given effects that the line does not have."""
    return [e for e in effects if not await line.has(context, e)]


async def in_force_behind(context: Context, family: int, line: Line) -> list[Effect]:
    """The effects left behind that still hold and that the line has not taken over."""
    found = await effects_of_family(context, family)
    held = await held_by(context, found, line)
    own = [e for e in found if e.place not in held and not e.replays]
    return [effect for effect in own if is_in_force(effect, found)]


def is_in_force(effect: Effect, among: Iterable[Effect]) -> bool:
    """True if the call has, or may have, changed something that is still so."""
    if effect.undone or effect.status == FAILED:
        return False
    if effect.status != "unknown":
        return True
    return all(other.settles != effect.place for other in among)


async def held_by(
    context: Context, effects: Iterable[Effect], line: Line
) -> set[Place]:
    """The places of the effects that a line has, by itself or taken over."""
    held: set[Place] = set()
    for effect in await on_line(context, effects, line):
        places = (effect.place, effect.replays, effect.settles)
        held.update(place for place in places if place)
    return held


async def is_undone(context: Context, place: Place) -> bool:
    """True if the effect at the place was undone."""
    return _value(await _undo_entry(context, place, "end")).get("status") == COMPLETED


async def is_being_undone(context: Context, place: Place) -> bool:
    """True if undoing the effect at the place has begun, with or without an end."""
    return await _undo_entry(context, place, "begin") is not None


async def _undo_entry(context: Context, place: Place, when: str) -> Entry | None:
    thread, key, attempt = place
    return await journal.find_entry(context, thread, f"{UNDO}{attempt}:{when}:{key}")


def shown_time(effect: Effect) -> str:
    """The time of an effect, as text."""
    return f"{EPOCH + timedelta(microseconds=effect.at):%Y-%m-%dT%H:%M:%SZ}"


# --- the effect that a call means -----------------------------------------------------


class Earlier(msgspec.Struct, frozen=True):
    """An effect with the identity of a call; on its line if it is the very call."""

    effect: Effect
    is_on_line: bool

    @property
    def status(self) -> Status:
        """The status of its effect."""
        return self.effect.status


class _Indexed(msgspec.Struct, frozen=True):
    """A line of the index by identity."""

    thread: str
    key: str
    attempt: int
    checkpoint: str | None
    in_items: bool
    arguments: str
    replays: Place | None
    settles: Place | None

    @property
    def place(self) -> Place:
        return self.thread, self.key, self.attempt


async def find_earlier(
    context: Context, made: IdentifiedCall, line: Line
) -> Earlier | None:
    """The first effect that a call may take over.

    It was left behind, has the same identity, and was not taken over by the line yet;
    of several the one with equal arguments comes first. Or it is the same call, made in
    the thread that this one was forked from.
    """
    rows = await _rows_with(context, made, line)
    if not rows:
        return None
    behind: list[_Indexed] = []
    taken: set[Place | None] = set()
    for row in rows:
        if not await line.has(context, row):
            behind.append(row)
            continue
        taken |= {row.replays, row.settles}
        if row.key == made.key:
            effect = await _read(context, row)
            if effect and not await is_undone(context, effect.replays or effect.place):
                return Earlier(effect, is_on_line=True)
    free = [r for r in behind if not r.replays and r.place not in taken]
    given, settled = digest(made.call), {row.settles for row in rows}
    for row in sorted(free, key=lambda row: row.arguments != given):
        effect = await _read(context, row)
        if effect and (effect.status != "unknown" or row.place not in settled):
            return Earlier(effect, is_on_line=False)
    return None


def digest(call: TranscriptCall) -> str:
    """A digest of the arguments that does not depend on their order."""
    try:
        text = orjson.dumps(call.arguments, option=orjson.OPT_SORT_KEYS)
    except (TypeError, ValueError):
        text = codec.encode(call.arguments, "arguments")
    return hashlib.sha256(text).hexdigest()[:32]


async def _rows_with(
    context: Context, made: IdentifiedCall, line: Line
) -> list[_Indexed]:
    family = line.family
    if family is None:
        record = await context.find_thread(made.thread)
        if record is None:
            return []
        family = record.family
    query = FamilyEntries(family=family, prefix=f"{EFFECT}{made.identity}:")
    found = [_indexed(entry) for entry in await context.backend.scan(query)]
    return [row for row in found if row]


def _indexed(entry: Entry) -> _Indexed | None:
    matched = _INDEX.fullmatch(entry.key)
    if matched is None:  # a caller of an earlier version recorded it
        return None
    value = fields_of_entry(entry)
    return _Indexed(
        entry.thread,
        matched[2],
        int(matched[1]),
        value.get("anchor"),
        value.get("in_items", False),
        value["arguments"],
        place_in(value, "replays"),
        place_in(value, "settles"),
    )


def indexed_place(entry: Entry) -> Place | None:
    """The place of the effect that a line of the index means."""
    row = _indexed(entry)
    return row.place if row else None


async def _read(context: Context, row: _Indexed) -> Effect | None:
    """The effect that a line of the index means, unless it did not happen after all."""
    parts: dict[str, Entry] = {}
    for what in ("call:begin", "call:end", "undo:end"):
        kind, when = what.split(":")
        key = f"{kind}:{row.attempt}:{when}:{row.key}"
        entry = await journal.find_entry(context, row.thread, key)
        if entry is not None:
            parts[what] = entry
    effect = _effect(row.place, parts) if "call:begin" in parts else None
    has_happened = effect and effect.status != FAILED and not effect.undone
    return effect if has_happened else None


prepare(_Index, *_FORMS.values())
