"""Calls made once: what the journal of a conversation's thread knows of them.

Each attempt at a call is noted under a number: that it begins, before it is made, and
how it ended. Notes are never replaced, so that of two workers one begins, and of two
results the first stays.
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
from holdfast._messages.transcript import Call, answers_of, calls_of
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


class Outlook(msgspec.Struct, frozen=True, kw_only=True):
    """What the journal knows of a call: its last attempt, and how that ended.

    ``begun`` is what was noted when it began and ``ended`` how it ended, ``None`` if
    that is not known.
    """

    attempt: int = 0
    begun: dict[str, Any] | None = None
    ended: dict[str, Any] | None = None

    @property
    def is_interrupted(self) -> bool:
        """Whether it began and nobody knows how it ended."""
        return self.begun is not None and self.ended is None

    @property
    def is_completed(self) -> bool:
        """Whether there is a result."""
        return self.ended is not None and self.ended["status"] == COMPLETED

    @property
    def result(self) -> Any:
        """What it gave, if it was completed."""
        return self.ended["result"] if self.ended else None


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """A call to be made once, and where that is noted."""

    thread: str
    start: Start
    key: str
    call: Call


def key_of(messages: Sequence[object], id_: str) -> str:
    """What a call is known by in the journal.

    Models that use the same ids every turn have had answers to them: how many tells
    the calls apart.
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


async def look(context: Context, thread: str, key: str) -> Outlook:
    """What the journal knows of a call: the first result, or else its last attempt."""
    outlook = Outlook()
    while not outlook.is_completed:
        attempt = outlook.attempt + 1
        begun = await _entry(context, thread, _begin(key, attempt))
        if begun is None:
            break
        ended = await _entry(context, thread, _end(key, attempt))
        outlook = Outlook(attempt=attempt, begun=begun, ended=ended)
    return outlook


async def _entry(context: Context, thread: str, key: str) -> dict[str, Any] | None:
    found = await journal.recorded_one(context, thread, key, None, None)
    return cast("dict[str, Any] | None", found)


async def expect(context: Context, made: Made, *, again: bool) -> Outlook:
    """What is known of a call; `Conflict` if it may not be made."""
    outlook = await look(context, made.thread, made.key)
    begun = outlook.begun
    call = made.call
    if begun and (begun["name"], begun["arguments"]) != (call.name, _digest(call)):
        raise Conflict(
            f"call {call.id!r} was made before as {begun['name']!r} with other"
            " arguments, or of another tool; a new call needs an id of its own",
            code="call_differs",
            thread=made.thread,
        )
    if outlook.is_interrupted and not again:
        raise _interrupted(made)
    return outlook


def _interrupted(made: Made) -> Conflict:
    call = made.call
    return Conflict(
        f"call {call.id!r} of {call.name!r} began, here or elsewhere, and did not end:"
        " it may or may not have taken effect. Look, then pass again=True to make it"
        f" once more, or tell what it gave with resolve({call.id!r}, result)",
        code=INTERRUPTED,
        thread=made.thread,
    )


def _digest(call: Call) -> str:
    """The same for the same arguments, whatever their order."""
    try:
        text = orjson.dumps(call.arguments, option=orjson.OPT_SORT_KEYS)
    except (TypeError, ValueError):
        text = codec.encode(call.arguments, "arguments")
    return sha256(text).hexdigest()[:32]


async def begin(context: Context, made: Made, attempt: int) -> None:
    """Note that a call is going to be made; `Conflict` if somebody else was first."""
    token = context.new_id()
    begun = _begun(made.call) | {"token": token}
    key = _begin(made.key, attempt)
    in_force = await _note(context, made, {key: begun})
    if in_force[key]["token"] != token:
        raise _interrupted(made)


def _begun(call: Call) -> dict[str, object]:
    return {"id": call.id, "name": call.name, "arguments": _digest(call)}


async def complete(context: Context, made: Made, attempt: int, result: object) -> Any:
    """Note what a call gave; gives back the result in force."""
    key = _end(made.key, attempt)
    ended = {key: {"status": COMPLETED, "result": result}}
    return (await _note(context, made, ended))[key]["result"]


async def fail(context: Context, made: Made, attempt: int, error: str) -> None:
    """Note that a call raised, so that it may be made again."""
    ended = {"status": FAILED, "error": error[:LONGEST_ERROR]}
    await _note(context, made, {_end(made.key, attempt): ended})


async def resolve(context: Context, made: Made, result: object) -> Any:
    """Note what an interrupted call gave; gives back the result in force."""
    outlook = await look(context, made.thread, made.key)
    if outlook.is_completed:
        return outlook.result
    if outlook.is_interrupted:
        return await complete(context, made, outlook.attempt, result)
    attempt = outlook.attempt + 1
    begun = _begun(made.call) | {"token": context.new_id()}
    await _note(context, made, {_begin(made.key, attempt): begun})
    return await complete(context, made, attempt, result)


async def _note(
    context: Context, made: Made, values: Mapping[str, Mapping[str, object]]
) -> dict[str, dict[str, Any]]:
    where = journal.JournalPlace(
        made.thread, made.start, checkpoint=None, replace=False
    )
    entries = where.entries(context, values)
    in_force = await journal.record(context, where, entries)
    return cast("dict[str, dict[str, Any]]", in_force)


async def interrupted(context: Context, thread: str) -> list[dict[str, Any]]:
    """What was noted of the calls that began and did not end, oldest first."""
    page = await context.backend.scan(Entries(thread=thread, checkpoint=""))
    outlooks: dict[str, Outlook] = {}
    for entry in page:
        matched = _ENTRY.fullmatch(entry.key)
        if matched is None:
            continue
        attempt, what, key = int(matched[1]), matched[2], matched[3]
        before = outlooks.get(key, Outlook())
        value = cast("dict[str, Any]", entry.value)
        if what == "begin" and not before.is_completed:
            outlooks[key] = Outlook(attempt=attempt, begun=value)
        elif value.get("status") == COMPLETED or attempt == before.attempt:
            outlooks[key] = msgspec.structs.replace(before, ended=value)
    found = [outlook for outlook in outlooks.values() if outlook.is_interrupted]
    return [outlook.begun for outlook in found if outlook.begun]
