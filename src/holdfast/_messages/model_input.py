"""Messages of any format in the shape of each provider, and as our own records."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable
from typing import Any, cast

from holdfast._messages import anthropic, openai_chat, openai_responses
from holdfast._messages.parts import (
    Call,
    Media,
    Other,
    Text,
    Thought,
    text_in_place_of,
)
from holdfast._messages.shapes import to_json
from holdfast._messages.turns import SYSTEM, ReadMessage, Turn, joined, read
from holdfast._values.arguments import checked_items
from holdfast.messages import (
    AnthropicRequest,
    AnyMessage,
    Attachment,
    Message,
    ToolCall,
    restored,
    stored,
)


def to_openai(messages: Iterable[AnyMessage]) -> list[Any]:
    """Messages for OpenAI's Chat Completions."""
    return list(to_json(openai_chat.write(_read(messages))))


def to_openai_responses(messages: Iterable[AnyMessage]) -> list[Any]:
    """Items for OpenAI's Responses."""
    return list(to_json(openai_responses.write(_read(messages))))


def to_anthropic(messages: Iterable[AnyMessage]) -> AnthropicRequest:
    """Arguments for Anthropic's Messages."""
    return cast("AnthropicRequest", to_json(anthropic.write(_read(messages))))


def to_plain(messages: Iterable[AnyMessage]) -> list[Message]:
    """Our own records."""
    found: list[Message] = []
    for each in joined(_read(messages)):
        known = restored(each.message) if each.message else None
        found += [known] if isinstance(known, Message) else map(_plain, each.turns)
    return found


def _read(messages: Iterable[AnyMessage]) -> list[ReadMessage]:
    given = checked_items(messages, "messages")
    return read([_fields(message) for message in given])


def _fields(message: AnyMessage | str) -> dict[str, Any]:
    # Plain threads may have texts among their messages.
    if isinstance(message, str):
        return {"role": "user", "content": message}
    return stored(message)


def _plain(turn: Turn) -> Message:
    parts = turn.parts
    calls = [part.call for part in parts if isinstance(part, Call)]
    texts = [part for part in parts if isinstance(part, Text | Other)]
    thoughts = [part.text for part in parts if isinstance(part, Thought)]
    return Message(
        role="system" if turn.role in SYSTEM else turn.role,
        content="\n".join(map(text_in_place_of, texts)),
        name=turn.name or None,
        tool_calls=[
            ToolCall(id=c.id, name=c.name, arguments=c.arguments) for c in calls
        ],
        tool_call_id=turn.call_id or None,
        attachments=[_attachment(part) for part in parts if isinstance(part, Media)],
        reasoning="\n".join(thoughts) or None,
        metadata={"is_error": True} if turn.is_error else {},
    )


def _attachment(part: Media) -> Attachment:
    try:
        content = b64decode(part.base64) if part.base64 else None
    except ValueError:
        return Attachment(kind=part.kind, name=part.name, content=part.note)
    uploaded = {"file_id": part.file_id} if part.file_id else {}
    return Attachment(
        kind=part.kind,
        name=part.name,
        mime_type=part.mime_type,
        content=content,
        url=part.url or None,
        extra=uploaded,
    )
