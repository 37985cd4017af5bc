"""The framework's durable operations as steps of a run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from pydantic import ValidationError
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.durable_exec import (
    JSON_CODEC,
    BoundDurableOperation,
    DurableOperation,
    DurableOperationId,
    JournalCallableOperationBackend,
    ModelRequestId,
    ModelRequestParams,
    RoleBasedOperationConfig,
    ToolsetCallToolId,
    ToolsetCallToolParams,
)
from pydantic_ai.messages import ModelMessage

from holdfast.adapters.pydantic_ai._once import call_once, declared
from holdfast.adapters.pydantic_ai._run import running
from holdfast.effects import Declaration
from holdfast.errors import FormatMismatch, Unstorable


class StepCodec:
    """JSON; a step that cannot be read is an error of the store.

    The framework would treat a `ValidationError` as bad arguments of a tool, and the
    model would call it again.
    """

    def dump(self, tp: Any, value: Any) -> Any:
        return JSON_CODEC.dump(tp, value)

    def load(self, tp: Any, payload: Any) -> Any:
        try:
            return JSON_CODEC.load(tp, payload)
        except ValidationError as error:
            raise FormatMismatch(
                "a step of a run is stored in a form that this version of Pydantic AI"
                " does not read; finish the run with the version that began it, or"
                f" rewind it to before the step: {error}"
            ) from error


def not_storable(error: Exception) -> Unstorable:
    """The error that the framework raises for a result that cannot be encoded."""
    return Unstorable("result", f"cannot be stored as JSON: {error}")


class GivenParameters:
    """Passes on the parameters of an operation, where other backends hash them."""

    def project(self, params: Any) -> tuple[object, ...]:
        return (params,)


GIVEN: Final = GivenParameters()


class StepBackend(JournalCallableOperationBackend[Declaration | None]):
    """Makes each operation a step of the run around it.

    The configuration of a tool is its declaration, if its calls are effects.
    """

    def __init__(
        self,
        agent: AbstractAgent[Any, Any] | None,
        *,
        agent_name: str,
        default_model_id: str | None,
    ) -> None:
        super().__init__(
            agent_name=agent_name,
            default_model_id=default_model_id,
            config=RoleBasedOperationConfig[Declaration | None](
                model=None,
                event=None,
                capability=None,
                tool=None,
                resolve_tool=partial(declared, agent),
            ),
        )

    def bind(
        self, operation: DurableOperation[Any, Any, Any]
    ) -> BoundDurableOperation[Any, Any, Any]:
        return super().bind(replace(operation, cache_identity=GIVEN))

    async def execute(
        self,
        *,
        operation_id: DurableOperationId,
        name: str,
        body: Callable[[], Awaitable[object]],
        cache_key: tuple[object, ...],
        config: Declaration | None,
    ) -> object:
        """The result of a step: the recorded one, or a new one, which is recorded."""
        run = running.get()
        assert run is not None
        step, [params] = run.next_step(name), cache_key
        asked: Sequence[ModelMessage] = ()
        if isinstance(params, ModelRequestParams):
            asked = run.new_messages(params.messages)
        if run.is_made(step):
            return run.result(step)
        around = running.set(None)
        try:
            if config is not None and isinstance(params, ToolsetCallToolParams):
                result = await call_once(run, step, config, params, body)
            else:
                result = await body()
        finally:
            running.reset(around)
        await run.record(step, result, asked, kind=_kind(operation_id))
        return result


def _kind(operation_id: DurableOperationId) -> str:
    match operation_id:
        case ModelRequestId():
            return "model_request"
        case ToolsetCallToolId():
            return "tool_call"
        case _:
            return "step"
