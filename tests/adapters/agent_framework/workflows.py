"""Workflows and agents for the tests: no model, and executors that can fail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponse,
    Executor,
    Message,
    WorkflowBuilder,
    WorkflowContext,
    handler,
)


class Step(Executor):
    """Adds one to a number and sends it on; ``fails`` makes the first run fail."""

    def __init__(self, name: str, *, fails: bool = False):
        super().__init__(id=name)
        self.runs, self.fails = 0, fails

    @handler
    async def run(self, number: int, ctx: WorkflowContext[int, int]) -> None:
        self.runs += 1
        if self.fails:
            raise RuntimeError(f"{self.id} failed")
        if self.id == "c":
            await ctx.yield_output(number + 1)
        else:
            await ctx.send_message(number + 1)

    async def on_checkpoint_save(self) -> dict[str, Any]:
        return {"runs": self.runs}

    async def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
        self.runs = state["runs"]


def builder(start, storage, name: str = "wf") -> WorkflowBuilder:
    """The beginning of a workflow whose executors may all give outputs."""
    options = {"checkpoint_storage": storage, "output_from": "all"}
    return WorkflowBuilder(start_executor=start, name=name, **options)


def chain(storage, *, fails: bool = False, name: str = "wf"):
    """A workflow a -> b -> c and its executors; b can fail."""
    a, b, c = Step("a"), Step("b", fails=fails), Step("c")
    begun = builder(a, storage, name)
    return begun.add_edge(a, b).add_edge(b, c).build(), (a, b, c)


class ScriptedClient(BaseChatClient):
    """Answers every request with a number, and remembers how much it was shown."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[int] = []

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool = False, **_: Any
    ) -> Any:
        self.seen.append(len(messages))

        async def answer() -> ChatResponse:
            text = f"answer {len(self.seen)}"
            return ChatResponse(messages=[Message("assistant", [text])])

        return answer()


def agent(*providers: Any, name: str = "ann") -> tuple[Agent, ScriptedClient]:
    """An agent with a scripted model, and the model."""
    client = ScriptedClient()
    return Agent(client=client, name=name, context_providers=list(providers)), client
