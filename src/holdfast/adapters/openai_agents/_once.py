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
from holdfast._engine.recorder.calls import Made, Outlook
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
        journal = Journal(
            runner, Made(thread=place.thread, start=place.start, key=key, call=call)
        )
        outlook = await journal.begin(again=again)
        if outlook.is_completed:
            return outlook.result
        try:
            result = await tool.on_invoke_tool(context, arguments)
        except Exception as error:
            await journal.fail(outlook.attempt, f"{type(error).__name__}: {error}")
            raise
        return await journal.complete(outlook.attempt, result)

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
        found = await self.runner.read(lambda context: present(context, self.place))
        resumed = self.resumed
        if resumed and call in resumed.calls and found.run != resumed.id:
            raise resumed_by_another()

        async def stored(limit: int | None) -> Items:
            del limit  # it is asked for all
            return found.items

        return await self.held.items(None, stored) if self.held else found.items


class Journal:
    """What is noted of one call."""

    def __init__(self, runner: Runner, made: Made) -> None:
        self._runner, self._made = runner, made

    async def begin(self, *, again: bool) -> Outlook:
        """The result if there is one, or else the attempt that begins now."""
        made = self._made

        async def begin(context: Context) -> Outlook:
            outlook = await calls.expect(context, made, again=again)
            if outlook.is_completed:
                return outlook
            await calls.begin(context, made, outlook.attempt + 1)
            return Outlook(attempt=outlook.attempt + 1)

        return await self._runner.save(begin, made.thread)

    async def complete(self, attempt: int, result: Any) -> Any:
        """The result in force; one that cannot be stored is noted as its text."""
        made = self._made

        def note(value: object) -> Any:
            return self._runner.save(
                lambda context: calls.complete(context, made, attempt, value),
                made.thread,
            )

        try:
            return await note(result)
        except Unstorable:
            await note(str(result))
            return result

    async def fail(self, attempt: int, error: str) -> None:
        """Note that it raised, so that it may be made again."""
        made = self._made
        await self._runner.save(
            lambda context: calls.fail(context, made, attempt, error), made.thread
        )
