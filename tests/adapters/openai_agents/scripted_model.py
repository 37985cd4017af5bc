"""A model for the OpenAI Agents SDK that returns prepared outputs."""

from __future__ import annotations

from typing import Any

from agents import ModelResponse, Usage
from agents.models.interface import Model
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseReasoningItem,
)
from openai.types.responses.response_reasoning_item import Summary


def says(text, id="msg_1"):
    """A message of the model."""
    content = ResponseOutputText(text=text, type="output_text", annotations=[])
    return ResponseOutputMessage(
        id=id, type="message", role="assistant", status="completed", content=[content]
    )


def calls(name, arguments="{}", id="call_1", item=None):
    """A call of a tool, or of a handoff."""
    return ResponseFunctionToolCall(
        id=item or f"fc_{id}",
        call_id=id,
        type="function_call",
        name=name,
        arguments=arguments,
        status="completed",
    )


def thinks(text, id="rs_1"):
    """What the model thought."""
    summary = [Summary(text=text, type="summary_text")]
    return ResponseReasoningItem(id=id, type="reasoning", summary=summary)


class Scripted(Model):
    """Gives one output after the other, or raises it; ``inputs`` are what it saw."""

    def __init__(self, *outputs: Any) -> None:
        self.outputs = list(outputs)
        self.inputs: list[Any] = []

    def _next(self, input_):
        self.inputs.append(list(input_) if isinstance(input_, list) else input_)
        output = self.outputs.pop(0)
        if isinstance(output, Exception):
            raise output
        return output if isinstance(output, list) else [output]

    async def get_response(self, system_instructions, input, *rest, **options):
        number = len(self.inputs)
        return ModelResponse(
            output=self._next(input), usage=Usage(), response_id=f"resp_{number}"
        )

    async def stream_response(self, system_instructions, input, *rest, **options):
        number = len(self.inputs)
        response = Response(
            id=f"resp_{number}",
            created_at=0,
            model="scripted",
            object="response",
            output=self._next(input),
            tool_choice="none",
            tools=[],
            parallel_tool_calls=False,
        )
        yield ResponseCompletedEvent(
            type="response.completed", response=response, sequence_number=0
        )
