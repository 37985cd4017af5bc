"""Tools whose calls are made once, however often a run is resumed."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from agents import FunctionTool
from agents.tool_context import ToolContext

from holdfast._engine.context import Context
from holdfast._engine.recorder import calls
from holdfast._engine.recorder.calls import CallStatus, JournaledCall
from holdfast._messages.transcript import Call, decoded
from holdfast.adapters.openai_agents._changes import Items, Place, present
from holdfast.adapters.openai_agents._paused import Resumed, resumed_by_another
from holdfast.adapters.openai_agents._runner import Runner
from holdfast.adapters.openai_agents._transaction import Held
from holdfast.errors import Unstorable

# The items of the session at the moment, in which a call is not answered yet.
Read = Callable[[str], Awaitable[Items]]


def once(
    tool: FunctionTool, runner: Runner, place: Place, read: Read, *, again: bool
) -> FunctionTool:
    """The same tool, with its calls in the journal of the conversation."""

    async def invoke(context: ToolContext[Any], arguments: str) -> Any:
        call = Call(context.tool_call_id, tool.name, decoded(arguments))
        # It may not be among the items yet, only others with its id.
        made = {"type": "function_call", "call_id": call.id, "name": call.name}
        key = calls.key_of([*await read(call.id), made], call.id)
        journaled = JournaledCall(
            thread=place.thread, start=place.start, key=key, call=call
        )
        journal = Journal(runner, journaled)
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


class Now(msgspec.Struct, frozen=True):
    """A session at the moment, perhaps with a run that it resumes."""

    runner: Runner
    place: Place
    resumed: Resumed | None
    held: Held | None

    async def items(self, call: str) -> Items:
        """All items while a call is made.

        The answer to a call takes the run that waits for it away: as long as that is
        there, nobody else has gone on with it.
        """
        found = await self.runner.read(present, self.place)
        resumed = self.resumed
        if resumed and call in resumed.calls and found.run != resumed.id:
            raise resumed_by_another()

        async def stored(limit: int | None) -> Items:
            del limit  # it is asked for all
            return found.items

        return await self.held.items(None, stored) if self.held else found.items


class Journal:
    """What is noted of one call."""

    def __init__(self, runner: Runner, call: JournaledCall) -> None:
        self._runner, self._call = runner, call

    async def begin(self, *, again: bool) -> CallStatus:
        """The result if there is one, or else the attempt that begins now."""
        return await self._runner.save(_begin, self._call, again=again)

    async def complete(self, attempt: int, result: Any) -> Any:
        """The result in force; one that cannot be stored is noted as its text."""
        save, call = self._runner.save, self._call
        try:
            return await save(calls.complete, call, attempt, result)
        except Unstorable:
            await save(calls.complete, call, attempt, str(result))
            return result

    async def fail(self, attempt: int, error: str) -> None:
        """Note that it raised, so that it may be made again."""
        await self._runner.save(calls.fail, self._call, attempt, error)


async def _begin(context: Context, call: JournaledCall, *, again: bool) -> CallStatus:
    status = await calls.expect(context, call, again=again)
    if status.is_completed:
        return status
    await calls.begin(context, call, status.attempt + 1)
    return CallStatus(attempt=status.attempt + 1)
