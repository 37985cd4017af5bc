"""Tools that a durable run calls once: their calls are effects."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple, cast

from pydantic_ai.agent import AbstractAgent
from pydantic_ai.durable_exec import (
    DurableOperationId,
    ToolsetCallToolId,
    ToolsetCallToolParams,
)
from pydantic_ai.tools import Tool
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset
from pydantic_core import to_jsonable_python

from holdfast.adapters.pydantic_ai._names import RUN
from holdfast.adapters.pydantic_ai._run import DurableRun, Step
from holdfast.backends import Start
from holdfast.effects import UNDECLARED, Declaration, Effect, Policy, declaration_of
from holdfast.errors import Conflict, NotFound, Unstorable
from holdfast.operations import Context
from holdfast.operations.effects import (
    HAPPENED,
    INTERRUPTED,
    JournaledCall,
    Line,
    Permission,
    calls,
    ledger,
)
from holdfast.operations.stores import settled
from holdfast.operations.threads import find_record
from holdfast.operations.transcripts import TranscriptCall

RETURNED: Final = "tool_return"
# How the framework marks a result; any other mark is control flow, such as a retry.
_RESULTS: Final = frozenset({RETURNED, "tool_content_result"})
_ADVICE: Final = {
    INTERRUPTED: ". Look, then record its result with durability.resolve(effect,"
    " result), or allow it once more with durability.retry(effect);"
    " durability.unknown(run_id) lists such effects",
    HAPPENED: ". Declare the tool with another policy to make it happen once more",
}


class OnceCall(NamedTuple):
    """A call that may be made, or its result."""

    made: JournaledCall
    permission: Permission


def declared(
    agent: AbstractAgent[Any, Any] | None,
    operation_id: DurableOperationId,
    tool: object | None,
    name: str,
) -> Declaration | None:
    """The declaration of a tool's function, if the calls of the tool are effects.

    The tools of dynamic toolsets and of servers have no function with a declaration.
    """
    if tool is None or not isinstance(operation_id, ToolsetCallToolId):
        return None
    # A tool may be renamed on the way to the model; its toolset knows its own name.
    own = getattr(tool, "original_name", None) or name
    found = _tools(agent, operation_id.toolset_id).get(own)
    says = declaration_of(found.function) if found else UNDECLARED
    return None if says is UNDECLARED or says.is_repeatable else says


def _tools(agent: AbstractAgent[Any, Any] | None, id_: str) -> dict[str, Tool[Any]]:
    """The tools of the agent's toolset of functions with an id."""
    found: dict[str, Tool[Any]] = {}

    def look(toolset: AbstractToolset[Any]) -> None:
        if isinstance(toolset, FunctionToolset) and toolset.id == id_:
            found.update(toolset.tools)

    for toolset in agent.toolsets if agent else ():
        toolset.apply(look)
    return found


async def call_once(
    run: DurableRun,
    step: Step,
    tool: Declaration,
    asked: ToolsetCallToolParams,
    body: Callable[[], Awaitable[object]],
) -> object:
    """The result of a call that is made at most once, also if the process is killed."""
    runner = run.store.runner
    call = await settled(runner.run(_begin, _journaled(run, step, tool, asked), tool))
    if call.permission.is_completed:
        return {"result": call.permission.result, "kind": RETURNED}
    try:
        payload = await body()
    except Unstorable:  # the call was made: a person has to check its effect
        raise
    except Exception as error:
        await settled(runner.run(_fail, call, f"{type(error).__name__}: {error}"))
        raise
    await settled(runner.run(_end, call, cast("Mapping[str, Any]", payload)))
    return payload


def _journaled(
    run: DurableRun, step: Step, tool: Declaration, asked: ToolsetCallToolParams
) -> JournaledCall:
    id_ = asked.ctx.tool_call_id or str(step.nth)
    plain = to_jsonable_python(asked.tool_args, fallback=str)
    return JournaledCall(
        thread=run.thread,
        start=Start(kind=RUN),
        key=f"{asked.name}:{step.nth}:{id_}",
        call=TranscriptCall(id_, asked.name, plain),
        identity=tool.identity(asked.name, plain),
        anchor=run.head.id if run.head else None,
    )


# --- operations -----------------------------------------------------------------------


async def _begin(context: Context, made: JournaledCall, tool: Declaration) -> OnceCall:
    record = await find_record(context, made.thread)
    line = Line(record.family, record.head) if record else Line(None, None)
    ours = record.effects if record else None
    policy = cast("Policy", ours or tool.policy or "replay")
    try:
        permission = await calls.permit(context, made, line, policy)
        if not permission.is_completed:
            await calls.begin(context, made, permission)
    except Conflict as conflict:
        raise _advised(conflict) from conflict
    return OnceCall(made, permission)


def _advised(conflict: Conflict) -> Conflict:
    """The same refusal, with the next step in terms of this adapter."""
    advice = _ADVICE.get(conflict.code)
    if advice is None:
        return conflict
    text = conflict.message.partition(". ")[0] + advice
    return Conflict(text, code=conflict.code, thread=conflict.thread)


async def _end(context: Context, call: OnceCall, payload: Mapping[str, Any]) -> None:
    attempt = call.permission.attempt
    if payload["kind"] in _RESULTS:
        await calls.complete(context, call.made, attempt, payload["result"])
    else:
        text = f"{payload['kind']}: {payload.get('message', '')}"
        await calls.fail(context, call.made, attempt, text)


async def _fail(context: Context, call: OnceCall, error: str) -> None:
    await calls.fail(context, call.made, call.permission.attempt, error)


async def unknown(context: Context, thread: str) -> list[Effect]:
    """The calls of a run and its forks without a recorded end."""
    record = await find_record(context, thread)
    if record is None:
        raise NotFound(f"there is no run {thread!r}; see threads()", thread=thread)
    found = await ledger.effects_of_family(context, record.family)
    return [effect for effect in found if effect.status == "unknown"]


async def resolve(context: Context, effect: Effect, result: object) -> None:
    """Record the result of a call without a recorded end."""
    await calls.complete(context, _stored(effect), effect.attempt, result)


async def retry(context: Context, effect: Effect) -> None:
    """Record that a call had no effect, so that it may be made again."""
    await calls.fail(context, _stored(effect), effect.attempt, "it had no effect")


def _stored(effect: Effect) -> JournaledCall:
    if effect.status != "unknown":
        raise Conflict(
            f"it is known how {effect} ended; only a call that began and did not end"
            " can be decided",
            code="call_ended",
            thread=effect.thread,
        )
    return JournaledCall(
        thread=effect.thread,
        start=Start(kind=RUN),
        key=effect.key,
        call=TranscriptCall(effect.call_id, effect.tool, effect.arguments),
        identity="",
        anchor=effect.checkpoint,
    )
