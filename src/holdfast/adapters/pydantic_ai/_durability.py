"""The capability that makes the runs of an agent durable."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Literal, Unpack

from pydantic_ai.agent import EventStreamHandler
from pydantic_ai.capabilities import WrapRunHandler
from pydantic_ai.durable_exec import (
    BaseDurabilityCapability,
    DurabilityEngineSpec,
    conversation_id_from_run_id,
)
from pydantic_ai.models import Model
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import AgentDepsT, RunContext

from holdfast.adapters.pydantic_ai import _once
from holdfast.adapters.pydantic_ai._names import RUN, thread_name
from holdfast.adapters.pydantic_ai._run import DurableRun, running
from holdfast.adapters.pydantic_ai._steps import StepBackend, StepCodec, not_storable
from holdfast.effects import Effect
from holdfast.operations import OpenOptions
from holdfast.operations.stores import StoreOrAddress, UsedStore, settled

# Steps are numbered in the order in which they begin; "parallel" has no fixed order.
ToolOrder = Literal["sequential", "parallel_ordered_events"]


@dataclass(init=False)
class HoldfastDurability(BaseDurabilityCapability[AgentDepsT]):
    """Makes every model request and tool call in a `run` a recorded step.

    Use it as ``Agent(..., name=..., capabilities=[HoldfastDurability("agents.db")])``.
    ``store`` is a `Store`, an `AsyncStore`, or an address, which is opened with the
    options of `holdfast.open` and closed by `close`. ``models``,
    ``event_stream_handler`` and ``name`` are those of the framework's capabilities.
    Outside of a `run` nothing is recorded.

    Calls of tools that are declared `holdfast.once` are effects: they are made at most
    once. Any other tool is called again if the process was killed during its call.
    """

    engine_spec: ClassVar[DurabilityEngineSpec] = DurabilityEngineSpec(
        engine_name="Holdfast",
        durable_unit_noun="step",
        durable_container_noun="run",
        codec=StepCodec(),
        serialization_failure=not_storable,
        # A run connects to a server only if a step of the server is not recorded yet.
        toolset_lifecycles={
            "function": "enter-always",
            "mcp": "enter-in-durable-unit",
            "dynamic": "enter-never",
        },
        unsupported_runtime_toolset_kinds=frozenset({"function", "mcp", "dynamic"}),
    )

    def __init__(
        self,
        store: StoreOrAddress,
        *,
        models: Mapping[str, Model] | None = None,
        event_stream_handler: EventStreamHandler[AgentDepsT] | None = None,
        name: str | None = None,
        tool_order: ToolOrder = "sequential",
        **options: Unpack[OpenOptions],
    ) -> None:
        super().__init__(
            models=models, event_stream_handler=event_stream_handler, name=name
        )
        self._used = UsedStore(store, **options)
        self._tool_order: ToolOrder = tool_order

    async def close(self) -> None:
        """Close the store, if it was opened here."""
        await self._used.close()

    @asynccontextmanager
    async def run(self, run_id: str) -> AsyncGenerator[DurableRun]:
        """Make what agents do inside of the block steps of a run.

        Steps that any process recorded under the id are not made again, so that a
        killed run continues. A finished run gives the same results again. `Conflict`
        with the code ``run_moved`` if another worker continues the run.
        """
        run = DurableRun(self._used.awaited, run_id)
        await run.open()
        around = running.set(run)
        try:
            yield run
        finally:
            running.reset(around)

    # --- calls whose outcome is unknown -----------------------------------------------

    async def unknown(self, run_id: str) -> list[Effect]:
        """The calls of a run and its forks without a recorded end."""
        runner = self._used.awaited.runner
        return await runner.run(_once.unknown, thread_name(RUN, run_id))

    async def resolve(self, effect: Effect, result: object) -> None:
        """Record the result of a call, as the caller found out."""
        runner = self._used.awaited.runner
        await settled(runner.run(_once.resolve, effect, result))

    async def retry(self, effect: Effect) -> None:
        """Record that a call had no effect: the next run makes it again."""
        await settled(self._used.awaited.runner.run(_once.retry, effect))

    # --- what the framework asks ------------------------------------------------------

    @property
    def in_durable_context(self) -> bool:
        return running.get() is not None

    def get_durable_operation_backend(self) -> StepBackend:
        return StepBackend(
            self.agent, agent_name=self.name, default_model_id=self.default_model_id
        )

    def get_default_run_id(self) -> str | None:
        run = running.get()
        return run.next_agent() if run else None

    def get_default_conversation_id(self, run_id: str) -> str | None:
        return conversation_id_from_run_id(run_id) if running.get() else None

    async def get_run_start_time(self, run_id: str) -> datetime | None:
        run = running.get()
        return await run.started_at(run_id) if run else None

    async def wrap_run(
        self, ctx: RunContext[AgentDepsT], *, handler: WrapRunHandler
    ) -> AgentRunResult[Any]:
        del ctx
        agent = self.agent
        if agent is None or not self.in_durable_context:
            return await handler()
        with agent.parallel_tool_call_execution_mode(self._tool_order):
            return await handler()
