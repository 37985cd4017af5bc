"""Events of Google's Agent Development Kit, and Gemini's contents inside of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import orjson

from holdfast._messages.loose import fields_of, parts_of

Fields = Mapping[str, object]


def read(fields: Fields) -> Fields | None:
    """An event in Anthropic's form, ``None`` for any other message."""
    if "author" not in fields or "role" in fields:
        return None
    content = fields.get("content")
    if "parts" in fields_of(content):
        parts = parts_of(fields_of(content)["parts"])
        blocks = [*_blocks(parts), *_error(fields)]
    elif content is None and "invocation_id" in fields:
        blocks = [*_error(fields), *_actions(fields_of(fields.get("actions")))]
    else:
        return None
    return {"role": _role(fields), "content": blocks}


def _role(fields: Fields) -> str:
    role = fields_of(fields.get("content")).get("role")
    if role is None:
        return "user" if fields["author"] == "user" else "assistant"
    return "assistant" if role == "model" else str(role)


def _blocks(parts: list[object]) -> Iterator[Fields]:
    for part in map(fields_of, parts):
        for name, value in part.items():
            if name == "text":
                yield _said(value, part)
            elif name in _BLOCKS:
                yield _BLOCKS[name](fields_of(value))


def _said(text: object, part: Fields) -> Fields:
    if part.get("thought"):
        return {"type": "thinking", "thinking": text}
    return {"type": "text", "text": text}


def _call(fields: Fields) -> Fields:
    call = {"type": "tool_use", "id": fields.get("id")}
    return {**call, "name": fields.get("name"), "input": fields.get("args")}


def _result(fields: Fields) -> Fields:
    result = {"type": "tool_result", "tool_use_id": fields.get("id")}
    return {**result, "content": _text(fields.get("response"))}


def _file(fields: Fields) -> Fields:
    kind = fields.get("mime_type")
    source = {"type": "base64", "media_type": kind, "data": fields.get("data")}
    if "file_uri" in fields:
        source = {"type": "url", "url": fields["file_uri"]}
    is_picture = isinstance(kind, str) and kind.startswith("image/")
    return {"type": "image" if is_picture else "document", "source": source}


_BLOCKS: Mapping[str, Callable[[Fields], Fields]] = {
    "function_call": _call,
    "function_response": _result,
    "executable_code": lambda fields: {"type": "text", "text": fields.get("code")},
    "code_execution_result": lambda fields: {
        "type": "text",
        "text": fields.get("output"),
    },
    "inline_data": _file,
    "file_data": _file,
}


def _error(fields: Fields) -> Iterator[Fields]:
    text = fields.get("error_message")
    if isinstance(text, str):
        yield {"type": "text", "text": text}


def _actions(actions: Fields) -> Iterator[Fields]:
    """The actions of an event without a content, in words."""
    compaction = fields_of(actions.get("compaction"))
    summary = fields_of(compaction.get("compacted_content"))
    yield from _blocks(parts_of(summary.get("parts")))
    before = actions.get("rewind_before_invocation_id")
    if before:
        yield {"type": "text", "text": f"rewound to before {before}"}
    changed = fields_of(actions.get("state_delta"))
    if changed:
        yield {"type": "text", "text": f"state changed: {', '.join(map(str, changed))}"}
    if actions.get("end_of_agent"):
        yield {"type": "text", "text": "the agent has ended"}


def _text(response: object) -> str:
    """A result as text; ADK keeps one that is no mapping under ``result``."""
    fields = fields_of(response)
    if len(fields) == 1 and "result" in fields:
        response = fields["result"]
    if isinstance(response, str):
        return response
    try:
        return orjson.dumps(response).decode()
    except TypeError:
        pass  # an integer of more than 64 bits, or nested too deep
    try:
        return str(response)
    except RecursionError:
        return ""
