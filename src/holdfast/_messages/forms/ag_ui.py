"""Messages of AG-UI, the protocol between agents and user interfaces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from holdfast._messages.loose import fields_of, parts_of

Fields = Mapping[str, object]


def read(fields: Fields) -> Fields | None:
    """A message in Anthropic's form, ``None`` if nothing in it is AG-UI's own.

    Plain texts, also those of ``reasoning``, need no translation.
    """
    answered = fields.get("toolCallId")
    if fields.get("role") == "tool" and isinstance(answered, str):
        return {"role": "user", "content": [_result(answered, fields)]}
    calls = parts_of(fields.get("toolCalls"))
    if fields.get("role") == "assistant" and calls:
        return {"role": "assistant", "content": [*_said(fields), *map(_call, calls)]}
    if fields.get("role") == "reasoning":
        thought = fields.get("content") or ""
        block = {"type": "thinking", "thinking": thought}
        return {"role": "assistant", "content": [block]}
    return None


def _said(fields: Fields) -> Iterator[object]:
    content = fields.get("content")
    if isinstance(content, str) and content:
        yield {"type": "text", "text": content}
    yield from parts_of(content)


def _call(call: object) -> Fields:
    fields = fields_of(call)
    function = fields_of(fields.get("function"))
    return {
        "type": "tool_use",
        "id": fields.get("id"),
        "name": function.get("name"),
        "input": function.get("arguments") or {},
    }


def _result(answered: str, fields: Fields) -> Fields:
    content = fields.get("content")
    return {"type": "tool_result", "tool_use_id": answered, "content": content}
