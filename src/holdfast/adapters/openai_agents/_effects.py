"""The effects of a session: listing them, settling an unknown one, undoing them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast._engine.context import Context
from holdfast._engine.effects import calls, ledger, undo
from holdfast._engine.effects.calls import JournaledCall
from holdfast._messages.transcript import TranscriptCall
from holdfast.adapters.openai_agents._changes import ConversationKey, present
from holdfast.adapters.openai_agents._item_calls import item_calls
from holdfast.adapters.openai_agents._line import SessionLine
from holdfast.adapters.openai_agents._runner import SessionRunner
from holdfast.effects import UNDECLARED, Compensation, Declaration, Effect
from holdfast.errors import NotFound


async def current_line(context: Context, key: ConversationKey) -> SessionLine | None:
    """The line of a session as it is stored, ``None`` if there is no session."""
    found = await present(context, key)
    if found.thread is None:
        return None
    now = item_calls(found.items, found.summary)
    return SessionLine(found.thread.family, found.head, "", now)


async def effects(
    context: Context, key: ConversationKey, *, left_behind: bool
) -> list[Effect]:
    """The effects on the line of a session, or those of its family that are not."""
    line = await current_line(context, key)
    if line is None or line.family is None:
        return []
    found = await ledger.effects_of_family(context, line.family)
    if left_behind:
        return await ledger.in_force_behind(context, line.family, line)
    return [e for e in found if await line.has(context, e.thread, e.key, e.checkpoint)]


async def resolve(
    context: Context, key: ConversationKey, call: str, result: object
) -> Any:
    """Record what a call returned whose outcome is unknown."""
    line = await current_line(context, key)
    family = line.family if line else None
    found = [] if family is None else await ledger.effects_of_family(context, family)
    unknown = [
        effect
        for effect in found
        if effect.call_id == call and effect.status == "unknown"
    ]
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
    )


# --- undoing --------------------------------------------------------------------------


async def to_undo(context: Context, key: ConversationKey) -> list[Effect]:
    """The effects that no session of the family has any more, newest first."""
    line = await current_line(context, key)
    return [] if line is None else await undo.to_undo(context, key.thread, line)


class Undoing(msgspec.Struct, frozen=True):
    """Undoes effects by what their tools declare, each journaled before and after."""

    runner: SessionRunner
    tools: Mapping[str, Declaration]

    async def compensate(self, key: ConversationKey) -> Compensation:
        """Undo what was left behind."""
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
