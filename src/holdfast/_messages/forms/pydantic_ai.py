"""Messages of Pydantic AI, as entries of a conversation or on their own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from holdfast._messages.loose import fields_of, parts_of

Block = dict[str, object]

_ROLES = {"request": "user", "response": "assistant"}


def read(fields: Mapping[str, object]) -> Mapping[str, object] | None:
    """A message in Anthropic's form, ``None`` if it is not one of Pydantic AI."""
    if fields.get("kind") == "message":
        fields = fields_of(fields.get("message"))
    kind = fields.get("kind")
    role = _ROLES.get(kind) if isinstance(kind, str) else None
    if role is None or not isinstance(fields.get("parts"), list):
        return None
    found = [fields_of(part) for part in parts_of(fields.get("parts"))]
    kinds = {part.get("part_kind") for part in found if _is_kind(part)}
    if kinds == {"system-prompt"}:
        role = "system"
    return {"role": role, "content": [block for part in found for block in _of(part)]}


def _is_kind(part: Mapping[str, object]) -> bool:
    return isinstance(part.get("part_kind"), str)


def _of(part: Mapping[str, object]) -> list[Block]:
    kind = part.get("part_kind")
    found = _READERS.get(kind) if isinstance(kind, str) else None
    return found(part) if found else []


def _said(part: Mapping[str, object]) -> list[Block]:
    content = part.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [_piece(piece) for piece in parts_of(content)]


def _piece(piece: object) -> Block:
    """A piece of what a user gave: text, or a file."""
    if isinstance(piece, str):
        return {"type": "text", "text": piece}
    fields = fields_of(piece)
    if fields.get("kind") == "text-content":
        return {"type": "text", "text": fields.get("content")}
    media = fields.get("media_type")
    is_image = isinstance(media, str) and media.startswith("image/")
    source = {"media_type": media, "url": fields.get("url")}
    return {"type": "image" if is_image else "document", "source": source}


def _thought(part: Mapping[str, object]) -> list[Block]:
    return [{"type": "thinking", "thinking": part.get("content")}]


def _call(part: Mapping[str, object]) -> list[Block]:
    call = {"id": part.get("tool_call_id"), "name": part.get("tool_name")}
    return [{"type": "tool_use", **call, "input": part.get("args")}]


def _result(part: Mapping[str, object]) -> list[Block]:
    content, id_ = part.get("content"), part.get("tool_call_id")
    text = content if isinstance(content, str) else _json(content)
    return [{"type": "tool_result", "tool_use_id": id_, "content": text}]


def _json(value: object) -> str:
    try:
        return json.dumps(value, skipkeys=True, default=str)
    except RecursionError:  # what is stored may be nested deeper than the stack
        return ""


def _retry(part: Mapping[str, object]) -> list[Block]:
    """The reason why the model has to try again, as a result or as a text."""
    return _result(part) if part.get("tool_name") else _said(part)


_READERS: dict[str, Callable[[Mapping[str, object]], list[Block]]] = {
    "system-prompt": _said,
    "user-prompt": _said,
    "text": _said,
    "compaction": _said,
    "retry-feedback": _said,
    "thinking": _thought,
    "tool-call": _call,
    "builtin-tool-call": _call,
    "tool-return": _result,
    "builtin-tool-return": _result,
    "retry-prompt": _retry,
}
