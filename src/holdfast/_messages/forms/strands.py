"""Messages of Strands Agents, which has those of Bedrock's Converse API.

A block has no type; its only key says what it is: ``{"toolUse": {...}}``.
"""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from holdfast._messages.loose import fields_of, parts_of

_BLOCKS = frozenset(
    {
        "audio",
        "cachePoint",
        "citationsContent",
        "document",
        "guardContent",
        "image",
        "reasoningContent",
        "text",
        "toolResult",
        "toolUse",
        "video",
    }
)
Block = Mapping[str, object]


def read(fields: Mapping[str, object]) -> Mapping[str, object] | None:
    """A message of Strands in Anthropic's form, ``None`` for every other message."""
    blocks = [fields_of(part) for part in parts_of(fields.get("content"))]
    if not blocks or "role" not in fields or not all(map(_is_block, blocks)):
        return None
    return {"role": fields["role"], "content": [_block(block) for block in blocks]}


def _is_block(block: Block) -> bool:
    # The blocks of other formats have a type, and can have these keys as well.
    return "type" not in block and not _BLOCKS.isdisjoint(block)


def _block(block: Block) -> Block:
    name = next(name for name in block if name in _BLOCKS)
    inner = fields_of(block[name])
    if name == "text":
        return _text(block[name])
    if name == "toolUse":
        call = {"type": "tool_use", "id": inner.get("toolUseId")}
        return {**call, "name": inner.get("name"), "input": inner.get("input")}
    if name == "toolResult":
        content = [_result(fields_of(part)) for part in parts_of(inner.get("content"))]
        result = {"type": "tool_result", "tool_use_id": inner.get("toolUseId")}
        return {
            **result,
            "content": content,
            "is_error": inner.get("status") == "error",
        }
    return _other(name, inner)


def _other(name: str, inner: Block) -> Block:
    if name == "reasoningContent":
        thought = fields_of(inner.get("reasoningText")).get("text", "")
        return {"type": "thinking", "thinking": thought}
    if name == "guardContent":
        return _text(fields_of(inner.get("text")).get("text", ""))
    if name == "citationsContent":
        said = (fields_of(part).get("text") for part in parts_of(inner.get("content")))
        return _text("".join(text for text in said if isinstance(text, str)))
    return {"type": name}


def _result(part: Block) -> Block:
    if "json" in part:
        try:
            return _text(orjson.dumps(part["json"], default=str).decode())
        except TypeError:  # such as keys that are no text
            return _text(str(part["json"]))
    return _text(part["text"]) if "text" in part else {"type": next(iter(part), "")}


def _text(value: object) -> Block:
    return {"type": "text", "text": value}
