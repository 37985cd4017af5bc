"""Tools whose calls are made once, also if a run is resumed several times."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from agents import FunctionTool
from agents.tool_context import ToolContext

from holdfast._engine.context import Context
from holdfast._engine.effects import calls
from holdfast._engine.effects.calls import JournaledCall, Permission
from holdfast._engine.effects.line import Line
from holdfast._messages.transcript import TranscriptCall, decoded
from holdfast.adapters.openai_agents._changes import ConversationKey, Items, present
from holdfast.adapters.openai_agents._paused_run import ResumedRun, resumed_by_another
from holdfast.adapters.openai_agents._runner import SessionRunner
from holdfast.adapters.openai_agents._transaction import PendingChanges
from holdfast.effects import UNDECLARED
from holdfast.errors import Unstorable

# Reads the items of the session at the time of a call, by the id of the call.
Read = Callable[[str], Awaitable[Items]]


def once(
    tool: FunctionTool,
    runner: SessionRunner,
    key: ConversationKey,
    read: Read,
    *,
    again: bool,
) -> FunctionTool:
    """A copy of a tool that records its calls in the journal of the conversation."""

    async def invoke(context: ToolContext[Any], arguments: str) -> Any:
        call = TranscriptCall(context.tool_call_id, tool.name, decoded(arguments))
        # The call may not be among the items yet, only earlier ones with its id.
        made = {"type": "function_call", "call_id": call.id, "name": call.name}
        call_key = calls.key_of([*await read(call.id), made], call.id)
        journaled = JournaledCall(
            thread=key.thread,
            start=key.start,
            key=call_key,
            call=call,
            identity=UNDECLARED.identity(call.name, call.arguments),
            anchor=None,
        )
        journal = CallJournal(runner, journaled)
        status = await journal.begin(again=again)
        if status.is_completed:
            return status.result
        try:
            result = await tool.on_invoke_tool(context, arguments)
        except Exception as error:
            await journal.fail(status.attempt, f"{type(error).__name__}: {error}")
            raise
        return await journal.complete(status.attempt, result)

    same = copy.copy(tool)
    same.on_invoke_tool = invoke
    return same


class CurrentItems(msgspec.Struct, frozen=True):
    """Reads the items of a session now, and checks the run that it resumes."""

    runner: SessionRunner
    key: ConversationKey
    resumed: ResumedRun | None
    held: PendingChanges | None

    async def items(self, call: str) -> Items:
        """All items; `Conflict` if another worker has resumed the run of this call.

        The answer to a call removes the paused run that waits for it. As long as the
        run is stored, no other worker has continued it.
        """
        found = await self.runner.read(present, self.key)
        resumed = self.resumed
        if resumed and call in resumed.calls and found.run != resumed.id:
            raise resumed_by_another()

        async def stored(limit: int | None) -> Items:
            del limit  # the caller asks for all
            return found.items

        return await self.held.items(None, stored) if self.held else found.items


class CallJournal:
    """Records one call: that it began, and how it ended."""

    def __init__(self, runner: SessionRunner, call: JournaledCall) -> None:
        self._runner, self._call = runner, call

    async def begin(self, *, again: bool) -> Permission:
        """The recorded result, or the number of the attempt that begins now."""
        return await self._runner.save(_begin, self._call, again=again)

    async def complete(self, attempt: int, result: Any) -> Any:
        """The recorded result; one that cannot be stored is recorded as its text."""
        save, call = self._runner.save, self._call
        try:
            return await save(calls.complete, call, attempt, result)
        except Unstorable:
            await save(calls.complete, call, attempt, str(result))
            return result

    async def fail(self, attempt: int, error: str) -> None:
        """Record that the call raised, so that it may be made again."""
        await self._runner.save(calls.fail, self._call, attempt, error)


async def _begin(context: Context, call: JournaledCall, *, again: bool) -> Permission:
    permitted = await calls.permit(context, call, Line(None, None), again=again)
    if not permitted.is_completed:
        await calls.begin(context, call, permitted)
    return permitted
