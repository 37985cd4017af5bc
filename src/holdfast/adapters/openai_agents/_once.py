"""Tools whose calls are made once, whatever is resumed or rewound."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

import msgspec
from agents import FunctionTool
from agents.tool_context import ToolContext

import holdfast
from holdfast._engine.effects import calls
from holdfast._messages.transcript import TranscriptCall, decoded
from holdfast.adapters.openai_agents._calls import BegunCall, SessionCall, begin
from holdfast.adapters.openai_agents._runner import SessionRunner
from holdfast.effects import Declaration, Key, Policy, declaration_of
from holdfast.errors import Unstorable

Invoke = Callable[[ToolContext[Any], str], Awaitable[Any]]
# What the SDK's tools call inside the part that turns errors into texts.
IMPLEMENTATION = "_invoke_tool_impl"
# What a session knows of a call, by the context of the call and the model's wish.
Locate = Callable[[ToolContext[Any], TranscriptCall], SessionCall]


def declared(
    tool: FunctionTool,
    key: Key | None,
    undo: Callable[..., Any] | None,
    policy: Policy | None,
) -> Declaration:
    """What a tool says about itself, where its function is known, and what is given.

    The SDK gives the function of a tool since 0.24.
    """
    found = declaration_of(getattr(tool, "__wrapped__", None))
    if key is None and undo is None and policy is None:
        return found

    @holdfast.once(key=key, undo=undo, policy=policy)
    def given() -> None:
        """Has what was given, checked."""

    more = declaration_of(given)
    return msgspec.structs.replace(
        found,
        is_repeatable=False,
        key=more.key or found.key,
        undo=more.undo or found.undo,
        policy=more.policy or found.policy,
    )


def once(tool: FunctionTool, runner: SessionRunner, locate: Locate) -> FunctionTool:
    """A copy of a tool that records its calls in the journal of the conversation."""

    async def invoke(context: ToolContext[Any], arguments: str) -> Any:
        call = TranscriptCall(context.tool_call_id, tool.name, decoded(arguments))
        begun = await runner.save(begin, locate(context, call))
        if begun.permission.is_completed:
            return begun.permission.result
        journal = CallJournal(runner, begun)
        failures: list[Exception] = []
        try:
            result = await noting(tool.on_invoke_tool, failures)(context, arguments)
        except Exception as error:
            await journal.fail(error)
            raise
        if failures:  # and the SDK has made a text for the model of it
            await journal.fail(failures[-1])
            return result
        return await journal.complete(result)

    same = copy.copy(tool)
    same.on_invoke_tool = invoke
    return same


def noting(invoke: Invoke, failures: list[Exception]) -> Invoke:
    """The same, which also notes an error that the SDK turns into a text.

    Versions before 0.24 do not let us see these: their text counts as a result.
    """
    inner = getattr(invoke, IMPLEMENTATION, None)
    if inner is None:
        return invoke

    @wraps(inner)
    async def noted(context: ToolContext[Any], arguments: str) -> Any:
        try:
            return await inner(context, arguments)
        except Exception as error:
            failures.append(error)
            raise

    same = copy.copy(invoke)
    setattr(same, IMPLEMENTATION, noted)
    return same


class CallJournal:
    """Records how one call ended."""

    def __init__(self, runner: SessionRunner, begun: BegunCall) -> None:
        self._runner, self._call = runner, begun.made
        self._attempt = begun.permission.attempt

    async def complete(self, result: Any) -> Any:
        """The recorded result; one that cannot be stored is recorded as its text."""
        save, call = self._runner.save, self._call
        try:
            return await save(calls.complete, call, self._attempt, result)
        except Unstorable:
            await save(calls.complete, call, self._attempt, str(result))
            return result

    async def fail(self, error: Exception) -> None:
        """Record that the call raised, so that it may be made again."""
        text = f"{type(error).__name__}: {error}"
        await self._runner.save(calls.fail, self._call, self._attempt, text)
