"""Calls of tools that are ``once``: places in the journal, and permissions."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import msgspec
from agents.models.fake_id import FAKE_RESPONSES_ID

from holdfast.adapters.openai_agents._approvals import (
    USED,
    consume,
    grant_of,
    used_before,
)
from holdfast.adapters.openai_agents._changes import (
    ConversationKey,
    Items,
    StoredItems,
    present,
)
from holdfast.adapters.openai_agents._paused_run import ResumedRun, resumed_by_another
from holdfast.adapters.openai_agents._transaction import PendingChanges
from holdfast.effects import UNDECLARED, Declaration, Effect, Policy
from holdfast.errors import Conflict
from holdfast.operations import Context
from holdfast.operations.effects import (
    JournaledCall,
    Line,
    Permission,
    TranscriptLine,
    calls,
    ledger,
)
from holdfast.operations.transcripts import (
    TranscriptCall,
    calls_of,
    fields_of,
    item_calls,
    key_of,
    open_calls,
)


class SessionCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that a run makes of a tool that is ``once``.

    ``item`` is the id of the item in which the model made it, ``next_id`` the id of the
    checkpoint that will have the call, ``policy`` that of the session.
    """

    key: ConversationKey
    call: TranscriptCall
    item: str | None
    tool: Declaration
    policy: Policy | None
    again: bool
    next_id: str
    resumed: ResumedRun | None
    held: PendingChanges | None

    @property
    def thread(self) -> str:
        """The thread of the session."""
        return self.key.thread

    @property
    def is_resumed(self) -> bool:
        """True if the call belongs to a paused run that was loaded."""
        return self.resumed is not None and self.call.id in self.resumed.calls

    @property
    def grant(self) -> str | None:
        """The approval that the call needs."""
        if self.resumed is None or self.call.id not in self.resumed.asked:
            return None
        return grant_of(self.resumed.id, self.call.id)

    def is_made_in(self, items: Items) -> bool:
        """True if items have this very call, and not only one with the same id."""
        if self.call.id in map(_id, open_calls(items)):
            return True
        if self.item in {None, "", FAKE_RESPONSES_ID}:  # the provider gives no ids
            return False
        made = [item for item in items if self.call.id in map(_id, calls_of(item))]
        return self.item in {fields_of(item).get("id") for item in made}


def _id(call: TranscriptCall) -> str:
    return call.id


class BegunCall(NamedTuple):
    """A call with its place in the journal, and the permission to make it."""

    made: JournaledCall
    permission: Permission


# --- beginning ------------------------------------------------------------------------


async def begin(context: Context, asked: SessionCall) -> BegunCall:
    """Find out whether a call may be made, and if so record that it begins."""
    found = await present(context, asked.key)
    _refuse_stale(asked, found)
    current = await _current(asked, found)
    made = _journaled(asked, found, current)
    line = _line(asked, current)
    may_retry = await _has_failed(context, made, line) if asked.grant else False
    try:
        permission = await calls.permit(
            context, made, line, _policy(asked, found), again=asked.again
        )
    except Conflict as conflict:
        raise await _advised(context, made, line, conflict) from None
    if not permission.is_completed:
        await calls.begin(context, made, permission)
        used = await _use_approval(context, asked)
        if not (used or may_retry or asked.again):
            await calls.fail(context, made, permission.attempt, USED)
            raise used_before(asked.key, asked.call.id, asked.call.name)
    return BegunCall(made, permission)


def _refuse_stale(asked: SessionCall, found: StoredItems) -> None:
    """`Conflict` if another worker has resumed the run of this call.

    The answer to a call removes the paused run that waits for it. While the run is
    stored, no other worker has continued it.
    """
    held = asked.held.run if asked.held is not None else None
    current = {fields_of(held).get("id"), found.run.get("id")}
    if asked.resumed and asked.is_resumed and asked.resumed.id not in current:
        raise resumed_by_another()


async def _current(asked: SessionCall, found: StoredItems) -> StoredItems:
    """The stored items, with the changes of the open transaction."""
    if asked.held is None:
        return found
    return msgspec.structs.replace(
        found,
        items=await asked.held.items_of(found),
        summary=asked.held.summary_of(found),
    )


def _journaled(
    asked: SessionCall, found: StoredItems, current: StoredItems
) -> JournaledCall:
    items, summary = current.items, current.summary
    is_made = asked.is_resumed or asked.is_made_in(items)
    is_stored = found.head is not None and (
        asked.is_made_in(found.items)
        or (asked.is_resumed and found.run.get("id") is not None)
    )
    call, arguments = asked.call, asked.call.arguments
    # A model can write arguments that are no JSON object; the tool will refuse them.
    tool = asked.tool if type(arguments) is dict else UNDECLARED
    return JournaledCall(
        thread=asked.thread,
        start=asked.key.start,
        key=key_of(items, call.id, summary, is_made=is_made),
        call=call,
        identity=tool.identity(call.name, arguments),
        anchor=found.head.id if found.head and is_stored else asked.next_id,
        in_items=True,
    )


def _line(asked: SessionCall, current: StoredItems) -> Line:
    family = current.thread.family if current.thread else None
    waiting: set[str] = {asked.call.id, *current.run.get("calls", ())}
    made = item_calls(current.items, current.summary, waiting)
    return TranscriptLine(
        family, current.head, asked.next_id, by_items=True, calls=made
    )


def _policy(asked: SessionCall, found: StoredItems) -> Policy:
    ours = found.thread.effects if found.thread else None
    return cast("Policy", ours or asked.policy or asked.tool.policy or "replay")


# --- approvals ------------------------------------------------------------------------


async def _use_approval(context: Context, asked: SessionCall) -> bool:
    """Use the approval of a call up; False if an earlier call used it.

    It is used after the call was recorded: if the process is killed in between, the
    call is one with an unknown outcome, and not one without an approval.
    """
    return asked.grant is None or await consume(context, asked.key, asked.grant)


async def _has_failed(context: Context, made: JournaledCall, line: Line) -> bool:
    """True if the call raised before, and so has used its approval itself."""
    before = await calls.find_status(context, made.thread, made.key, line)
    return before.ended is not None and before.ended.get("error") != USED


# --- refusing -------------------------------------------------------------------------


async def _advised(
    context: Context, made: JournaledCall, line: Line, conflict: Conflict
) -> Conflict:
    """A refusal that says what to do in terms of a session."""
    if conflict.code not in {calls.INTERRUPTED, calls.HAPPENED}:
        return conflict
    status = await calls.find_status(context, made.thread, made.key, line)
    earlier = None if status.begun else await ledger.find_earlier(context, made, line)
    effect = earlier.effect if earlier else None
    say = _happened if conflict.code == calls.HAPPENED and effect else _interrupted
    text = say(made.call, effect)
    return Conflict(text, code=conflict.code, thread=made.thread)


def _interrupted(call: TranscriptCall, earlier: Effect | None) -> str:
    id_ = earlier.call_id if earlier else call.id
    return (
        f"call {id_!r} of {call.name!r} began, here or elsewhere, and did not end: it"
        " may or may not have taken effect. Look, then record its result with"
        f" session.resolve({id_!r}, result), or use session.once(tool, again=True) to"
        " make it once more"
    )


def _happened(call: TranscriptCall, earlier: Any) -> str:
    return (
        f"{earlier} happened already, as call {earlier.call_id!r} of thread"
        f" {earlier.thread!r} at {ledger.shown_time(earlier)}, and was left behind by a"
        f" rewind or fork; call {call.id!r} means the same. Use"
        " session.once(tool, policy='replay') to take its result over, or again=True"
        " to make it happen once more"
    )
