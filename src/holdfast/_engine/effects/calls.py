"""Tool calls that are made once, by entries in the journal of a thread.

Each attempt at a call has a number and two entries: one before the call is made, one
when it has ended. Entries are never replaced: of two workers only one can begin an
attempt, and of two results the first stays. A third entry, written with the first,
finds the call by its identity.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from holdfast._engine.context import Context
from holdfast._engine.effects import ledger
from holdfast._engine.effects.line import Line
from holdfast._engine.threads import journal, pending
from holdfast._messages.transcript import TranscriptCall
from holdfast._port import FamilyEntries, Start
from holdfast._values.records import ThreadRecord
from holdfast.effects import Effect, Place, Policy
from holdfast.errors import Conflict

INTERRUPTED: Final = "call_interrupted"
HAPPENED: Final = "effect_happened"
DENIED: Final = "effect_denied"
LONGEST_ERROR: Final = 2_000


class CallStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The last attempt of a call on a line, by the journal.

    ``begun`` is the entry made before the call and ``ended`` the one made after it,
    ``None`` where there is none. ``last`` is the last attempt on any line.
    """

    attempt: int = 0
    last: int = 0
    begun: dict[str, Any] | None = None
    ended: dict[str, Any] | None = None

    @property
    def is_interrupted(self) -> bool:
        """True if it began and its end was never recorded."""
        return self.begun is not None and self.ended is None

    @property
    def is_completed(self) -> bool:
        """True if there is a result."""
        return self.ended is not None and self.ended["status"] == ledger.COMPLETED

    @property
    def result(self) -> Any:
        """The result, if it was completed."""
        return self.ended.get("result") if self.ended else None


class JournaledCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call to be made once, and where it stands.

    ``anchor`` is the id of the first checkpoint that has the call, ``identity`` what it
    shares with calls that mean the same effect. With ``has_new_arguments`` the call may
    be repeated with other arguments of the same identity. ``in_items`` means that a
    session makes the call, whose items can be taken back.
    """

    thread: str
    start: Start
    key: str
    call: TranscriptCall
    identity: str
    anchor: str | None
    has_new_arguments: bool = False
    in_items: bool = False


class _Begun(msgspec.Struct, frozen=True):
    """An attempt at a call, as a line is asked for it."""

    thread: str
    key: str
    checkpoint: str | None
    in_items: bool

    @classmethod
    def of(cls, thread: str, key: str, begun: Mapping[str, Any]) -> _Begun:
        """The attempt that an entry is made of."""
        return cls(thread, key, begun.get("anchor"), begun.get("in_items", False))


# --- what is known of a call ----------------------------------------------------------


async def find_status(
    context: Context, thread: str, key: str, line: Line
) -> CallStatus:
    """The status of a call on a line: its first result there, or its last attempt."""
    found = CallStatus()
    while not found.is_completed:
        attempt = found.last + 1
        begun = await _entry(context, thread, ledger.begin_key(key, attempt))
        if begun is None:
            break
        found = msgspec.structs.replace(found, last=attempt)
        if await line.has(context, _Begun.of(thread, key, begun)):
            ended = await _entry(context, thread, ledger.end_key(key, attempt))
            status = CallStatus(attempt=attempt, last=attempt, begun=begun, ended=ended)
            happened = ledger.place_in(begun, "replays") or (thread, key, attempt)
            # A result that was undone on another line does not hold any more.
            if not status.is_completed or not await ledger.is_undone(context, happened):
                found = status
    return found


async def is_interrupted_elsewhere(
    context: Context, record: ThreadRecord, key: str, line: Line
) -> bool:
    """True if another thread of the family began the call and did not end it.

    Such a thread is the one that a fork was made of. A fork that may run what its
    origin ran makes the call all the same.
    """
    if record.effects == "run":
        return False
    begun = ledger.begin_key(key, 1)
    query = FamilyEntries(family=record.family, prefix=begun)
    others = [
        entry.thread
        for entry in await context.backend.scan(query)
        if entry.key == begun and entry.thread != record.id
    ]
    for other in others:
        if (await find_status(context, other, key, line)).is_interrupted:
            return True
    return False


async def _entry(context: Context, thread: str, key: str) -> dict[str, Any] | None:
    found = await journal.find_entry(context, thread, key)
    return ledger.fields_of_entry(found) if found else None


class Permission(msgspec.Struct, frozen=True):
    """The attempt that may be made, or the stored result of the call.

    ``settles`` is an effect that the caller decided about by making the call.
    """

    attempt: int
    settles: Place | None = None
    is_completed: bool = False
    result: Any = None


async def permit(
    context: Context,
    made: JournaledCall,
    line: Line,
    policy: Policy = "replay",
    *,
    again: bool = False,
) -> Permission:
    """The permission for a call; raises if the call is refused.

    ``again`` makes a call whose outcome is unknown once more, knowingly.
    """
    status = await find_status(context, made.thread, made.key, line)
    _refuse_other(made, status)
    if status.is_completed:
        return Permission(status.attempt, is_completed=True, result=status.result)
    if status.is_interrupted and not again:
        raise _interrupted(made)
    if policy == "deny":
        raise _denied(made)
    attempt = status.last + 1
    if status.is_interrupted:
        return Permission(attempt, (made.thread, made.key, status.attempt))
    if policy == "run":
        return Permission(attempt)
    found = await ledger.find_earlier(context, made, line)
    if found is None or again:
        return Permission(attempt, found.effect.place if found else None)
    _refuse_earlier(made, found, policy)
    return await _take_over_unless_undone(context, made, attempt, found.effect)


def _refuse_other(made: JournaledCall, status: CallStatus) -> None:
    begun, call = status.begun, made.call
    if made.has_new_arguments:
        return
    if begun and (begun["name"], begun["arguments"]) != (
        call.name,
        ledger.digest(call),
    ):
        raise Conflict(
            f"call {call.id!r} was made before as {begun['name']!r} with other"
            " arguments, or of another tool; a new call needs an id of its own",
            code="call_differs",
            thread=made.thread,
        )


def _refuse_earlier(made: JournaledCall, found: ledger.Earlier, policy: Policy) -> None:
    """Raise if the effect that a call means may not be taken over."""
    if found.status == "unknown":
        raise _interrupted(made, found)
    # The very call, made from another thread, is not a new decision.
    if policy == "refuse" and not found.is_on_line:
        raise _happened(made, found.effect)


# --- refusing a call ------------------------------------------------------------------


def _interrupted(
    made: JournaledCall, earlier: ledger.Earlier | None = None
) -> Conflict:
    call = made.call
    what = f"call {call.id!r} of {call.name!r}"
    if earlier is not None and not earlier.is_on_line:
        what += f", as call {earlier.effect.call_id!r} before the thread was rewound,"
    return Conflict(
        f"{what} began, here or elsewhere, and did not end: it may or may not have"
        " taken effect. Look, then pass again=True to make it once more, or record its"
        f" result with resolve({call.id!r}, result)",
        code=INTERRUPTED,
        thread=made.thread,
    )


def _undoing(made: JournaledCall) -> Conflict:
    call = made.call
    return Conflict(
        f"what call {call.id!r} of {call.name!r} means was done before and is being"
        " undone, or its undoing was interrupted: it may or may not be in force. Look,"
        " then pass again=True to make the call, or record the result with"
        f" resolve({call.id!r}, result)",
        code=INTERRUPTED,
        thread=made.thread,
    )


def _happened(made: JournaledCall, effect: Effect) -> Conflict:
    return Conflict(
        f"{effect} happened already, as call {effect.call_id!r} of thread"
        f" {effect.thread!r} at {ledger.shown_time(effect)}, and was left behind by a"
        f" rewind or fork. Record its result with resolve({made.call.id!r}, result), or"
        " pass again=True to make it happen once more",
        code=HAPPENED,
        thread=made.thread,
    )


def _denied(made: JournaledCall) -> Conflict:
    return Conflict(
        f"{made.call.name!r} was not called: this thread may not have effects"
        " (effects='deny'); fork it with effects='replay', or declare the tool"
        " @holdfast.repeatable if it changes nothing",
        code=DENIED,
        thread=made.thread,
    )


def _failed(made: JournaledCall, error: str | None) -> Conflict:
    return Conflict(
        f"call {made.call.id!r} of {made.call.name!r} returned, and another caller had"
        f" recorded that it failed ({error}). Look, then make the call again or record"
        f" its result with resolve({made.call.id!r}, result)",
        code="call_ended",
        thread=made.thread,
    )


# --- recording a call -----------------------------------------------------------------


async def begin(context: Context, made: JournaledCall, permitted: Permission) -> None:
    """Record that an attempt begins; `Conflict` if another worker has begun it."""
    token, attempt = context.new_id(), permitted.attempt
    settles = ledger.named_place("settles", permitted.settles)
    key = ledger.begin_key(made.key, attempt)
    values = {
        key: _begun(made) | {"token": token} | settles,
        ledger.effect_key(made, attempt): _index(made) | settles,
    }
    in_force = await _record(context, made.thread, made.start, values)
    if in_force[key]["token"] != token:
        raise _interrupted(made)


def _begun(made: JournaledCall) -> dict[str, Any]:
    call = made.call
    return {
        "id": call.id,
        "name": call.name,
        "arguments": ledger.digest(call),
        "given": call.arguments,
        **_anchored(made),
    }


def _index(made: JournaledCall) -> dict[str, Any]:
    return {**_anchored(made), "arguments": ledger.digest(made.call)}


def _anchored(made: JournaledCall) -> dict[str, Any]:
    in_items = {"in_items": True} if made.in_items else {}
    return {"anchor": made.anchor, **in_items}


async def _take_over(
    context: Context, made: JournaledCall, attempt: int, effect: Effect, result: object
) -> Permission:
    """Record that this line has an earlier effect; gives the result in force."""
    replays = ledger.named_place("replays", effect.replays or effect.place)
    end = ledger.end_key(made.key, attempt)
    values = {
        ledger.begin_key(made.key, attempt): _begun(made)
        | {"token": context.new_id()}
        | replays,
        end: {"status": ledger.COMPLETED, "result": result},
        ledger.effect_key(made, attempt): _index(made) | replays,
    }
    in_force = await _record(context, made.thread, made.start, values)
    return Permission(attempt, is_completed=True, result=in_force[end].get("result"))


async def _take_over_unless_undone(
    context: Context, made: JournaledCall, attempt: int, effect: Effect
) -> Permission:
    taken = await _take_over(context, made, attempt, effect, effect.result)
    # Looked up after the entries: of two workers, of which one takes an effect over and
    # the other one undoes it, at least one finds the entry of the other.
    if await ledger.is_being_undone(context, effect.replays or effect.place):
        await _withdraw(context, made, attempt)
        raise _undoing(made)
    return taken


async def _withdraw(context: Context, made: JournaledCall, attempt: int) -> None:
    """Forget that this line has taken over an earlier effect."""
    keys = (
        ledger.begin_key(made.key, attempt),
        ledger.end_key(made.key, attempt),
        ledger.effect_key(made, attempt),
    )
    await pending.forget(context, made.thread, keys)


async def complete(
    context: Context, made: JournaledCall, attempt: int, result: object
) -> Any:
    """Record what a call returned; gives the result in force."""
    key = ledger.end_key(made.key, attempt)
    ended = {key: {"status": ledger.COMPLETED, "result": result}}
    in_force = await _record(context, made.thread, made.start, ended)
    if in_force[key]["status"] == ledger.FAILED:
        raise _failed(made, in_force[key].get("error"))
    return in_force[key].get("result")


async def fail(context: Context, made: JournaledCall, attempt: int, error: str) -> None:
    """Record that a call raised, so that it may be made again."""
    ended = {"status": ledger.FAILED, "error": error[:LONGEST_ERROR]}
    key = ledger.end_key(made.key, attempt)
    await _record(context, made.thread, made.start, {key: ended})


async def resolve(
    context: Context, made: JournaledCall, line: Line, result: object
) -> Any:
    """Record what an interrupted call returned; gives the result in force.

    If the call means an effect that was left behind, this line takes it over; one whose
    outcome was unknown has ended with this result.
    """
    status = await find_status(context, made.thread, made.key, line)
    if status.is_completed:
        return status.result
    if status.is_interrupted:
        return await complete(context, made, status.attempt, result)
    attempt = status.last + 1
    found = await ledger.find_earlier(context, made, line)
    if found is None:
        await begin(context, made, Permission(attempt))
        return await complete(context, made, attempt, result)
    if found.status == "unknown":
        await _end(context, found.effect, made.start, result)
    taken = await _take_over(context, made, attempt, found.effect, result)
    return taken.result


async def _end(context: Context, effect: Effect, start: Start, result: object) -> None:
    """Record how a call ended that was made in this or another thread."""
    key = ledger.end_key(effect.key, effect.attempt)
    ended = {key: {"status": ledger.COMPLETED, "result": result}}
    await _record(context, effect.thread, start, ended)


async def _record(
    context: Context,
    thread: str,
    start: Start,
    values: Mapping[str, Mapping[str, object]],
) -> dict[str, dict[str, Any]]:
    where = journal.JournalPlace(thread, start, checkpoint=None, replace=False)
    entries = where.own_entries(context, values)
    in_force = await journal.record_entries(context, where, entries)
    return {entry.key: ledger.fields_of_entry(entry) for entry in in_force}
