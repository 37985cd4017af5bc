"""Messages of Microsoft's Agent Framework: of chats, and between executors.

A chat message has ``contents``. What an executor sends has a ``source_id``, which is
shown as its role, and any ``data``: the messages in it, or the value as JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import orjson

from holdfast._messages.loose import fields_of, parts_of

Fields = Mapping[str, object]
# The input of a workflow has this before the name of its first executor.
_INPUT = "internal:"
_BOOKKEEPING = frozenset({"__type__"})


def read(fields: Fields) -> Fields | None:
    """A message in Anthropic's form, ``None`` for a message of another framework."""
    role, source = fields.get("role"), fields.get("source_id")
    if isinstance(role, str) and isinstance(fields.get("contents"), list):
        shown = "user" if role == "tool" else role
        return {"role": shown, "content": list(_blocks(fields))}
    if fields.get("__type__") == "WorkflowMessage" and isinstance(source, str):
        sender = "user" if source.startswith(_INPUT) else source
        return {"role": sender, "content": _sent(fields.get("data"))}
    return None


def _sent(data: object) -> object:
    if isinstance(data, str):
        return data
    blocks = [block for message in _messages(data) for block in _blocks(message)]
    return blocks or _json(data)


def _messages(data: object) -> list[Fields]:
    """The chat messages that an executor sends: one, a list, a request, a response."""
    fields = fields_of(data)
    response = fields_of(fields.get("agent_response")) or fields
    held = parts_of(response.get("messages")) or parts_of(data) or [response]
    return [message for message in map(fields_of, held) if "contents" in message]


def _json(data: object) -> str:
    shown = {n: v for n, v in fields_of(data).items() if n not in _BOOKKEEPING} or data
    try:
        return orjson.dumps(shown, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    except TypeError:  # a number or a nesting that JSON does not have
        return f"({type(data).__name__})"


# --- contents -------------------------------------------------------------------------


def _blocks(message: Fields) -> Iterator[Fields]:
    for part in parts_of(message.get("contents")):
        content = fields_of(part)
        kind = content.get("type")
        block = _KINDS.get(kind) if isinstance(kind, str) else None
        yield block(content) if block else content


def _text(content: Fields) -> Fields:
    return {"type": "text", "text": content.get("text") or ""}


def _error(content: Fields) -> Fields:
    return {"type": "text", "text": content.get("message") or ""}


def _reasoning(content: Fields) -> Fields:
    return {"type": "thinking", "thinking": content.get("text") or ""}


def _call(content: Fields) -> Fields:
    given = content.get("arguments")
    return {
        "type": "tool_use",
        "id": content.get("call_id"),
        "name": content.get("name"),
        "input": {} if given is None else given,
    }


def _result(content: Fields) -> Fields:
    result = content.get("result")
    shown = result if isinstance(result, str) else _json(result)
    return {
        "type": "tool_result",
        "tool_use_id": content.get("call_id"),
        "content": shown,
    }


_KINDS: dict[str, Callable[[Fields], Fields]] = {
    "text": _text,
    "error": _error,
    "text_reasoning": _reasoning,
    "function_call": _call,
    "function_result": _result,
}
