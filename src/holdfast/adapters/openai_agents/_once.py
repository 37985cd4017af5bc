"""Tools that make each call once, also if a run is resumed or rewound."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import msgspec
from agents import FunctionTool
from agents.tool_context import ToolContext

import holdfast
from holdfast.adapters.openai_agents._approvals import consume, grant_of
from holdfast.adapters.openai_agents._calls import BegunCall, SessionCall, begin
from holdfast.adapters.openai_agents._changes import ConversationKey
from holdfast.adapters.openai_agents._paused_run import ResumedRun, answered
from holdfast.adapters.openai_agents._runner import SessionRunner
from holdfast.adapters.openai_agents._transaction import PendingChanges
from holdfast.adapters.openai_agents._turns import OpenTurns
from holdfast.effects import Declaration, Key, Policy, declaration_of
from holdfast.errors import Unstorable
from holdfast.operations.effects import JournaledCall, calls
from holdfast.operations.transcripts import TranscriptCall, decoded

Invoke = Callable[[ToolContext[Any], str], Awaitable[Any]]
# The SDK's tools call this method inside the part that turns errors into texts.
IMPLEMENTATION = "_invoke_tool_impl"
# A function that finds out if a call may be made, and records its beginning.
Begin = Callable[[ToolContext[Any], TranscriptCall], Awaitable[BegunCall]]


def declared(
    tool: FunctionTool,
    key: Key | None,
    undo: Callable[..., Any] | None,
    policy: Policy | None,
) -> Declaration:
    """The declaration of a tool: that of its function, with the given options over it.

    The SDK gives the function of a tool since 0.24.
    """
    found = declaration_of(getattr(tool, "__wrapped__", None))
    if key is None and undo is None and policy is None:
        return found

    @holdfast.once(key=key, undo=undo, policy=policy)
    def given() -> None:
        """Carries the given options, which the decorator checks."""

    more = declaration_of(given)
    return msgspec.structs.replace(
        found,
        is_repeatable=False,
        key=more.key or found.key,
        undo=more.undo or found.undo,
        policy=more.policy or found.policy,
    )


class Progress(NamedTuple):
    """The open transaction of a session, and the run that it resumed."""

    held: PendingChanges | None
    resumed: ResumedRun | None


class OnceCalls:
    """The calls of a session's tools that are ``once``.

    ``turns`` are the open turns. ``tools`` are the declarations of the tools by name.
    """

    def __init__(
        self, runner: SessionRunner, key: ConversationKey, policy: Policy | None
    ) -> None:
        self._runner, self._key = runner, key
        self._policy: Policy | None = policy
        self.turns = OpenTurns()
        self.tools: dict[str, Declaration] = {}
        # Calls of resumed runs; these calls use their approvals themselves.
        self._resumed: set[str] = set()
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock]
        self._locks = WeakKeyDictionary()

    def once(
        self,
        tool: FunctionTool,
        declared: Declaration,
        current: Callable[[], Progress],
        *,
        again: bool,
    ) -> FunctionTool:
        """A copy of a tool that records its calls in the journal of the session."""
        self.tools[tool.name] = declared

        async def begun(context: ToolContext[Any], call: TranscriptCall) -> BegunCall:
            held, resumed = current()
            if resumed is not None:
                self._resumed.add(call.id)
            next_id = held.id if held else self.turns.join(context.usage, call.id)
            asked = SessionCall(
                key=self._key,
                call=call,
                item=getattr(context.tool_call, "id", None),
                tool=declared,
                policy=self._policy,
                again=again,
                next_id=next_id,
                resumed=resumed,
                held=held,
            )
            async with self._lock():
                return await self._runner.save(begin, asked)

        same = copy.copy(tool)
        same.on_invoke_tool = _journaled(tool, self._runner, begun)
        return same

    def _lock(self) -> asyncio.Lock:
        """A lock that makes the calls of one turn begin one after the other.

        Without it two calls for the same effect could both take it over.
        """
        return self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())

    async def use_approvals(
        self, resumed: ResumedRun | None, answers: Sequence[object]
    ) -> None:
        """Use up the stored approvals of calls that these items answer.

        A tool that is ``once`` does so before the call.
        """
        if resumed is None or not resumed.approved:
            return
        for call in sorted((resumed.approved & answered(answers)) - self._resumed):
            await self._runner.save(consume, self._key, grant_of(resumed.id, call))


def _journaled(tool: FunctionTool, runner: SessionRunner, begun: Begin) -> Invoke:
    """An invoke that makes a call only if it may be made, and records its end."""

    async def invoke(context: ToolContext[Any], arguments: str) -> Any:
        name = tool.name
        call = TranscriptCall(context.tool_call_id, name, decoded(arguments))
        made, permission = await begun(context, call)
        if permission.is_completed:
            return permission.result
        journal = CallJournal(runner, made, permission.attempt)
        failures: list[Exception] = []
        try:
            result = await noting(tool.on_invoke_tool, failures)(context, arguments)
        except Exception as error:
            await journal.fail(error)
            raise
        if failures:  # the SDK turned the error into a text for the model
            await journal.fail(failures[-1])
            return result
        return await journal.complete(result)

    return invoke


def noting(invoke: Invoke, failures: list[Exception]) -> Invoke:
    """The same invoke; it also notes an error that the SDK turns into a text.

    Versions before 0.24 hide these errors: there the text counts as a result.
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

    def __init__(
        self, runner: SessionRunner, call: JournaledCall, attempt: int
    ) -> None:
        self._runner, self._call, self._attempt = runner, call, attempt

    async def complete(self, result: Any) -> Any:
        """The recorded result; one that cannot be stored is recorded as text."""
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
