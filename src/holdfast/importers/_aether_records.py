"""AetherShell's agents, conversations and values as states, without any loss."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from holdfast._messages.parts import as_text, from_base64
from holdfast.importers._fields import Fields
from holdfast.importers._reader import Damaged

WRAPPED = "$aether"
KEPT = "aether"

ROLES = {"System": "system", "User": "user", "Assistant": "assistant", "Tool": "tool"}
STATUSES = {
    "Pending": "pending",
    "Running": "running",
    "Completed": "completed",
    "Failed": "failed",
}
ATTACHMENTS = {
    "Image": "image",
    "Audio": "audio",
    "Video": "video",
    "File": "file",
    "Code": "code",
}
KINDS = {
    "Automatic": "automatic",
    "Manual": "manual",
    "PreOperation": "pre_operation",
    "Recovery": "recovery",
}
_PLAIN: dict[str, type] = {"Bool": bool, "Int": int, "Float": float, "Str": str}


class AetherRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record of the source: its agent, its time and the state it becomes."""

    id: str
    agent: str
    at: int
    state: dict[str, Any]


def agent(record: Any, where: str = "") -> AetherRecord:
    """An agent's state."""
    fields = Fields(record, where)
    id_, at = fields.text("agent_id"), fields.seconds("modified_at")
    state = {
        "name": fields.text("name"),
        "type": fields.text("agent_type"),
        "system_prompt": fields.maybe("system_prompt", str),
        "capabilities": fields.texts("capabilities"),
        "config": _values(fields.mapping("config")),
        "state": _values(fields.mapping("custom_state")),
        "metadata": fields.mapping("metadata"),
        "created_at": fields.seconds("created_at"),
    }
    return AetherRecord(id=id_, agent=id_, at=at, state=_present(state, fields))


def conversation(record: Any, where: str = "") -> AetherRecord:
    """A conversation with its messages."""
    fields = Fields(record, where)
    id_, agent_id = fields.text("id"), fields.text("agent_id")
    at = fields.seconds("last_message_at")
    messages = [
        _message(Fields(message, f"messages[{index}]"))
        for index, message in enumerate(fields.objects("messages"))
    ]
    state = {
        "title": fields.maybe("title", str),
        "archived": fields.maybe("archived", bool) or None,
        "tags": fields.texts("tags"),
        "metadata": fields.mapping("metadata"),
        "created_at": fields.seconds("created_at"),
    }
    whole = {**_present(state, fields), "messages": messages}
    return AetherRecord(id=id_, agent=agent_id, at=at, state=whole)


def _message(fields: Fields) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    metadata = fields.mapping("metadata")
    call = metadata.get("tool_call_id")
    message = {
        "id": fields.text("id"),
        "role": variant(fields, "role", ROLES, kept),
        "content": fields.text("content"),
        "at": fields.seconds("timestamp"),
        "tokens": fields.maybe("tokens", int),
        "attachments": [_attachment(Fields(a)) for a in fields.objects("attachments")],
        "tool_calls": [_call(Fields(call)) for call in fields.objects("tool_calls")],
        "tool_call_id": call if isinstance(call, str) else None,
        "parent": fields.maybe("parent_id", str),
        "metadata": metadata,
    }
    return {"holdfast": 1, **_present(message, fields, kept)}


def _attachment(fields: Fields) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    kind = variant(fields, "attachment_type", ATTACHMENTS, kept)
    attachment = {
        "id": fields.text("id"),
        "kind": kind,
        "name": fields.text("name"),
        "mime_type": fields.text("mime_type"),
        "content": _content(fields.maybe("content", str), kind),
        "url": fields.maybe("url", str),
        "size": fields.maybe("size", int),
    }
    return _present(attachment, fields, kept)


def _content(text: str | None, kind: str) -> str | bytes | None:
    """The bytes of a content in base64; a text that is none, as it is."""
    found = from_base64(text or "")
    # Short code can be base64 by chance, but hardly that of a text.
    is_chance = kind == "code" and isinstance(as_text(found), bytes)
    return text if found is None or is_chance else found


def _call(fields: Fields) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    call = {
        "id": fields.text("id"),
        "name": fields.text("name"),
        "arguments": _values(fields.mapping("arguments")),
        "status": variant(fields, "status", STATUSES, kept),
        "result": fields.maybe("result", str),
    }
    return _present(call, fields, kept)


def variant(
    fields: Fields, name: str, known: dict[str, str], kept: dict[str, Any]
) -> str:
    """A variant of an enum in our words; an unknown one keeps its own word.

    If the original cannot be computed from our word, it goes to ``kept``.
    """
    raw: object = fields.rest.pop(name, None)
    if isinstance(raw, dict) and len(cast("dict[str, Any]", raw)) == 1:
        text = next(iter(cast("dict[str, Any]", raw)))
    elif isinstance(raw, str):
        text = raw
    else:
        raise Damaged(f"{name} is not the name of a variant")
    word = known.get(text, text)
    if text != raw or (text in known.values()):
        kept[name] = raw
    return word


def _present(
    values: dict[str, Any], fields: Fields, kept: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The values that are not empty, and the source's other fields under `KEPT`."""
    rest = {**fields.rest, **(kept or {})}
    empty: tuple[object, ...] = (None, [], {})
    return {
        name: value
        for name, value in {**values, KEPT: rest}.items()
        if value not in empty
    }


def _values(values: dict[str, Any]) -> dict[str, Any]:
    return {name: plain(value) for name, value in values.items()}


def plain(value: object) -> object:
    """A `Value` as JSON; one that JSON cannot express is wrapped unchanged."""
    if value == "Null":
        return None
    tag, inner = _variant_of(value)
    if tag in _PLAIN and type(inner) is _PLAIN[tag]:
        return inner
    if tag == "Array" and isinstance(inner, list):
        return list(map(plain, cast("list[object]", inner)))
    if tag == "Record" and isinstance(inner, dict) and WRAPPED not in inner:
        return _values(cast("dict[str, Any]", inner))
    return {WRAPPED: value}


def _variant_of(value: object) -> tuple[str, Any]:
    if isinstance(value, dict) and len(cast("dict[str, Any]", value)) == 1:
        [variant_] = cast("dict[str, Any]", value).items()
        return variant_
    return "", None
