"""The effects of a session: to list, to resolve an unknown outcome, and to undo."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.adapters.openai_agents._changes import ConversationKey, admit
from holdfast.adapters.openai_agents._runner import SessionRunner
from holdfast.backends import ThreadRecord
from holdfast.effects import UNDECLARED, Compensation, Declaration, Effect
from holdfast.errors import NotFound
from holdfast.operations import Context
from holdfast.operations.effects import JournaledCall, calls, ledger, line_of, undo
from holdfast.operations.transcripts import TranscriptCall


async def _find(context: Context, key: ConversationKey) -> ThreadRecord | None:
    """The thread of a session, ``None`` if there is none."""
    await admit(context, key)
    return await context.find_thread(key.thread)


async def effects(
    context: Context, key: ConversationKey, *, left_behind: bool
) -> list[Effect]:
    """The effects on the line of a session, or those in force that it left behind."""
    record = await _find(context, key)
    if record is None:
        return []
    if not left_behind:
        return await ledger.effects(context, record.id)
    line = await line_of(context, record, record.head)
    return await ledger.in_force_behind(context, record.family, line)


async def resolve(
    context: Context, key: ConversationKey, call: str, result: object
) -> Any:
    """Record the result of a call without a recorded end."""
    record = await _find(context, key)
    found = await ledger.effects_of_family(context, record.family) if record else []
    unknown = [e for e in found if e.call_id == call and e.status == "unknown"]
    if not unknown:
        raise NotFound(
            f"session {key.id!r} has no call {call!r} that began and did not end; see"
            " session.effects(left_behind=True)",
            thread=key.thread,
            reference=call,
        )
    made = _journaled(unknown[-1], key)
    return await calls.complete(context, made, unknown[-1].attempt, result)


def _journaled(effect: Effect, key: ConversationKey) -> JournaledCall:
    call = TranscriptCall(effect.call_id, effect.tool, effect.arguments)
    return JournaledCall(
        thread=effect.thread,
        start=key.start,
        key=effect.key,
        call=call,
        identity=UNDECLARED.identity(effect.tool, effect.arguments),
        anchor=effect.checkpoint,
        in_items=effect.in_items,
    )


# --- undoing --------------------------------------------------------------------------


async def to_undo(context: Context, key: ConversationKey) -> list[Effect]:
    """The effects in force that no session of the family has any more, newest first."""
    record = await _find(context, key)
    if record is None:
        return []
    line = await line_of(context, record, record.head)
    return await undo.to_undo(context, record.id, line)


class Undoing(msgspec.Struct, frozen=True):
    """Undoes effects by what their tools declare, each journaled before and after."""

    runner: SessionRunner
    tools: Mapping[str, Declaration]

    async def compensate(self, key: ConversationKey) -> Compensation:
        """Undo the effects that were left behind."""
        return await undo.undo_all(
            lambda: self.runner.read(to_undo, key),
            self._declared,
            self.runner.save,
            _awaited,
        )

    def _declared(self, tool: str) -> Declaration:
        return self.tools.get(tool, UNDECLARED)


async def _awaited(result: Any) -> Any:
    return await result if inspect.isawaitable(result) else result
