"""Models for agents of Pydantic AI that answer without a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


def reply(messages: Any, info: object) -> Any:
    """A model that repeats what it was asked last."""
    from pydantic_ai.messages import ModelResponse, TextPart

    del info
    return ModelResponse(parts=[TextPart(f"you said {prompts_of(messages)[-1]}")])


def prompts_of(messages: Iterable[Any]) -> list[Any]:
    """What users said in some messages."""
    return [
        part.content
        for message in messages
        for part in message.parts
        if part.part_kind == "user-prompt"
    ]
