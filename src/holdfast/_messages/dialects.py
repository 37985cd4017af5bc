"""Tool calls and their results in the message formats of each provider.

OpenAI Chat and Holdfast list calls beside the content, and a result is a message.
OpenAI Responses has an item for each call and for each result. Anthropic has blocks for
both in the content.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from holdfast._messages.loose import fields_of, kind_of, parts_of
from holdfast._messages.transcript import (
    TranscriptCall,
    as_text,
    calls_of,
    is_call_item,
    role_of,
)

Fields: TypeAlias = Mapping[str, object]

INTERRUPTED = (
    "The call was interrupted before it was answered."
    " It may or may not have taken effect: check before calling again."
)

NOT_MADE = "The call was not made: it has had no effect."
# Texts of results that are not known; the real result may replace them.
PLACEHOLDERS = frozenset({INTERRUPTED, NOT_MADE})

# Items of OpenAI Responses whose output is text, so that a result can be created.
_OUTPUTS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
}
_THINKING = frozenset({"thinking", "redacted_thinking"})
_SUBSTANCE = ("refusal", "audio", "function_call", "attachments", "tool_calls")


def is_item(message: object) -> bool:
    """True for an item of an assistant turn in OpenAI Responses."""
    fields = fields_of(message)
    if role_of(fields) != "assistant" or not kind_of(fields):
        return False
    return is_call_item(fields) or not calls_of(fields)


def can_answer(message: object) -> bool:
    """True if results for the calls of a message can be created."""
    fields = fields_of(message)
    return not is_call_item(fields) or kind_of(fields) in _OUTPUTS


def _entries(fields: Fields, id_: str) -> list[object]:
    calls = parts_of(fields.get("tool_calls"))
    return [call for call in calls if fields_of(call).get("id") == id_]


def _blocks(fields: Fields, id_: str) -> list[object]:
    return [part for part in parts_of(fields.get("content")) if _is_use(part, {id_})]


def _is_use(part: object, ids: set[str]) -> bool:
    return kind_of(fields_of(part)) == "tool_use" and _has_id(part, ids)


def _has_id(part: object, ids: set[str]) -> bool:
    id_ = fields_of(part).get("id")
    return isinstance(id_, str) and id_ in ids


def _framed(fields: Fields, role: object) -> dict[str, object]:
    """The first fields of another message in the same format."""
    mark = {"holdfast": fields["holdfast"]} if "holdfast" in fields else {}
    return {**mark, "role": role}


def is_block(part: Fields) -> bool:
    """True if a result is a block, which has to be put into a message."""
    return kind_of(part) == "tool_result"


def new_host(fields: Fields, parts: list[object]) -> Fields:
    """A user message for the results of another message's calls."""
    return {**_framed(fields, "user"), "content": parts}


def note_like(messages: Sequence[object], text: str) -> Fields:
    """A message of the user's in the format of a transcript."""
    fields = fields_of(messages[-1] if messages else None)
    if any(is_item(message) for message in messages):
        part = {"type": "input_text", "text": text}
        return {"type": "message", "role": "user", "content": [part]}
    return {**_framed(fields, "user"), "content": text}


def interruption(fields: Fields, call: TranscriptCall) -> Fields:
    """The result of a call that was interrupted, a message or a block."""
    return result_of(fields, call, INTERRUPTED, is_error=True)


def result_of(
    fields: Fields, call: TranscriptCall, content: object, *, is_error: bool
) -> Fields:
    """The result of a call, in the format of the message with the call.

    It is a message or a block. Only a block can say that the result is an error.
    """
    if is_call_item(fields):
        kind = _OUTPUTS.get(kind_of(fields), f"{kind_of(fields)}_output")
        return {"type": kind, "call_id": call.id, "output": _plain(content)}
    if _blocks(fields, call.id) and not _entries(fields, call.id):
        block: dict[str, object] = {"type": "tool_result", "tool_use_id": call.id}
        block["content"] = _plain(content)
        return {**block, "is_error": True} if is_error else block
    frame = {**_framed(fields, "tool"), "tool_call_id": call.id}
    if "holdfast" in fields:
        return {**frame, "name": call.name, "content": content}
    return {**frame, "content": _plain(content)}


def _plain(content: object) -> object:
    """A result as the providers accept it: text, or parts with a type."""
    parts = parts_of(content)
    if isinstance(content, str) or (parts and all(map(kind_of, map(fields_of, parts)))):
        return content
    return as_text(content)


def proposal(fields: Fields, call: TranscriptCall) -> Fields:
    """A message with only one of another message's calls."""
    if is_call_item(fields):
        # With the id, OpenAI would require the reasoning item before it.
        return {name: value for name, value in fields.items() if name != "id"}
    frame = _framed(fields, fields.get("role"))
    entries = _entries(fields, call.id)
    if entries:
        silent = {} if "holdfast" in fields else {"content": None}
        return {**frame, **silent, "tool_calls": entries}
    # Anthropic requires a turn with thinking to begin with it.
    parts = parts_of(fields.get("content"))
    thinking = [part for part in parts if kind_of(fields_of(part)) in _THINKING]
    return {**frame, "content": [*thinking, *_blocks(fields, call.id)]}


def without(fields: Fields, ids: set[str]) -> Fields | None:
    """A message without some of its calls, ``None`` if nothing else is in it."""
    if is_call_item(fields):
        return None
    left = dict(fields)
    calls, parts = parts_of(fields.get("tool_calls")), parts_of(fields.get("content"))
    if calls:
        left["tool_calls"] = [call for call in calls if not _has_id(call, ids)]
        if not left["tool_calls"]:
            # OpenAI refuses an empty list.
            del left["tool_calls"]
    if parts:
        left["content"] = [part for part in parts if not _is_use(part, ids)]
    return left if _has_content(left) else None


def _has_content(fields: Fields) -> bool:
    content = fields.get("content")
    found = any(map(_is_shown, parts_of(content)))
    if not isinstance(content, list | tuple):
        found = content not in (None, "")
    return found or any(fields.get(name) for name in _SUBSTANCE)


def _is_shown(part: object) -> bool:
    fields = fields_of(part)
    kind = kind_of(fields)
    return kind not in _THINKING and not (kind == "text" and not fields.get("text"))
