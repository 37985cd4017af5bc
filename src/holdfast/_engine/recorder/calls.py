"""Tool calls that are made once, by entries in the journal of a conversation's thread.

Each attempt at a call has a number and two entries: one before the call is made, one
when it has ended. Entries are never replaced: of two workers only one can begin an
attempt, and of two results the first stays.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, cast

import msgspec
import orjson

from holdfast._engine.context import Context
from holdfast._engine.threads import journal
from holdfast._messages.transcript import TranscriptCall, answers_of, calls_of
from holdfast._port import Entries, Start
from holdfast._values import codec
from holdfast._values.records import checked_name
from holdfast.errors import Conflict, Unstorable

INTERRUPTED: Final = "call_interrupted"
COMPLETED: Final = "completed"
FAILED: Final = "failed"
LONGEST_ID: Final = 400
LONGEST_ERROR: Final = 2_000

_ENTRY = re.compile(r"call:(\d+):(begin|end):(.*)", re.DOTALL)


class CallStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What the journal has about a call: its last attempt and the entries of it.

    ``begun`` is the entry made before the call and ``ended`` the one made after it,
    ``None`` where there is none.
    """

    attempt: int = 0
    begun: dict[str, Any] | None = None
    ended: dict[str, Any] | None = None

    @property
    def is_interrupted(self) -> bool:
        """Whether it began and its end was never recorded."""
        return self.begun is not None and self.ended is None

    @property
    def is_completed(self) -> bool:
        """Whether there is a result."""
        return self.ended is not None and self.ended["status"] == COMPLETED

    @property
    def result(self) -> Any:
        """What it returned, if it was completed."""
        return self.ended["result"] if self.ended else None


class JournaledCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call to be made once, and the thread and key of its journal entries."""

    thread: str
    start: Start
    key: str
    call: TranscriptCall


def key_of(messages: Sequence[object], id_: str) -> str:
    """The key of a call in the journal.

    Some models use the same ids in every turn. The number of earlier answers to an id
    distinguishes such calls.
    """
    made = [n for n, m in enumerate(messages) if id_ in (c.id for c in calls_of(m))]
    before = messages[: made[-1]] if made else messages
    answers = sum(answers_of(message).count(id_) for message in before)
    try:
        name = checked_name(id_, longest=LONGEST_ID)
    except Unstorable:
        name = sha256(id_.encode(errors="surrogatepass")).hexdigest()
    return f"{answers}:{name}"


def _begin(key: str, attempt: int) -> str:
    return f"call:{attempt}:begin:{key}"


def _end(key: str, attempt: int) -> str:
    return f"call:{attempt}:end:{key}"


async def find_status(context: Context, thread: str, key: str) -> CallStatus:
    """The status of a call: its first result, or else its last attempt."""
    status = CallStatus()
    while not status.is_completed:
        attempt = status.attempt + 1
        begun = await _entry(context, thread, _begin(key, attempt))
        if begun is None:
            break
        ended = await _entry(context, thread, _end(key, attempt))
        status = CallStatus(attempt=attempt, begun=begun, ended=ended)
    return status


async def _entry(context: Context, thread: str, key: str) -> dict[str, Any] | None:
    found = await journal.recorded_one(context, thread, key, None, None)
    return cast("dict[str, Any] | None", found)


async def expect(context: Context, made: JournaledCall, *, again: bool) -> CallStatus:
    """The status of a call that may be made; `Conflict` if it may not."""
    status = await find_status(context, made.thread, made.key)
    begun = status.begun
    call = made.call
    if begun and (begun["name"], begun["arguments"]) != (call.name, _digest(call)):
        raise Conflict(
            f"call {call.id!r} was made before as {begun['name']!r} with other"
            " arguments, or of another tool; a new call needs an id of its own",
            code="call_differs",
            thread=made.thread,
        )
    if status.is_interrupted and not again:
        raise _interrupted(made)
    return status


def _interrupted(made: JournaledCall) -> Conflict:
    call = made.call
    return Conflict(
        f"call {call.id!r} of {call.name!r} began, here or elsewhere, and did not end:"
        " it may or may not have taken effect. Look, then pass again=True to make it"
        f" once more, or record its result with resolve({call.id!r}, result)",
        code=INTERRUPTED,
        thread=made.thread,
    )


def _digest(call: TranscriptCall) -> str:
    """A digest of the arguments that does not depend on their order."""
    try:
        text = orjson.dumps(call.arguments, option=orjson.OPT_SORT_KEYS)
    except (TypeError, ValueError):
        text = codec.encode(call.arguments, "arguments")
    return sha256(text).hexdigest()[:32]


async def begin(context: Context, made: JournaledCall, attempt: int) -> None:
    """Record that an attempt begins; `Conflict` if another worker has begun it."""
    token = context.new_id()
    begun = _begun(made.call) | {"token": token}
    key = _begin(made.key, attempt)
    in_force = await _record(context, made, {key: begun})
    if in_force[key]["token"] != token:
        raise _interrupted(made)


def _begun(call: TranscriptCall) -> dict[str, object]:
    return {"id": call.id, "name": call.name, "arguments": _digest(call)}


async def complete(
    context: Context, made: JournaledCall, attempt: int, result: object
) -> Any:
    """Record what a call returned; gives the result in force."""
    key = _end(made.key, attempt)
    ended = {key: {"status": COMPLETED, "result": result}}
    return (await _record(context, made, ended))[key]["result"]


async def fail(context: Context, made: JournaledCall, attempt: int, error: str) -> None:
    """Record that a call raised, so that it may be made again."""
    ended = {"status": FAILED, "error": error[:LONGEST_ERROR]}
    await _record(context, made, {_end(made.key, attempt): ended})


async def resolve(context: Context, made: JournaledCall, result: object) -> Any:
    """Record what an interrupted call returned; gives the result in force."""
    status = await find_status(context, made.thread, made.key)
    if status.is_completed:
        return status.result
    if status.is_interrupted:
        return await complete(context, made, status.attempt, result)
    attempt = status.attempt + 1
    begun = _begun(made.call) | {"token": context.new_id()}
    await _record(context, made, {_begin(made.key, attempt): begun})
    return await complete(context, made, attempt, result)


async def _record(
    context: Context, made: JournaledCall, values: Mapping[str, Mapping[str, object]]
) -> dict[str, dict[str, Any]]:
    where = journal.JournalPlace(
        made.thread, made.start, checkpoint=None, replace=False
    )
    entries = where.entries(context, values)
    in_force = await journal.record(context, where, entries)
    return cast("dict[str, dict[str, Any]]", in_force)


async def interrupted(context: Context, thread: str) -> list[dict[str, Any]]:
    """The first entries of the calls that began and did not end, oldest first."""
    page = await context.backend.scan(Entries(thread=thread, checkpoint=""))
    calls: dict[str, CallStatus] = {}
    for entry in page:
        matched = _ENTRY.fullmatch(entry.key)
        if matched is None:
            continue
        attempt, what, key = int(matched[1]), matched[2], matched[3]
        before = calls.get(key, CallStatus())
        value = cast("dict[str, Any]", entry.value)
        if what == "begin" and not before.is_completed:
            calls[key] = CallStatus(attempt=attempt, begun=value)
        elif value.get("status") == COMPLETED or attempt == before.attempt:
            calls[key] = msgspec.structs.replace(before, ended=value)
    interrupted = [status for status in calls.values() if status.is_interrupted]
    return [status.begun for status in interrupted if status.begun]
