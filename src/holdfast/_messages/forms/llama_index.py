"""LlamaIndex's `ChatMessage` as its ``model_dump`` gives it: a role and blocks."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast._messages.loose import fields_of, parts_of

_ROLES = {"chatbot": "assistant", "model": "assistant", "function": "tool"}


def read(fields: Mapping[str, object]) -> Mapping[str, object] | None:
    """A message of LlamaIndex in Anthropic's form, ``None`` for every other one."""
    if not {"blocks", "additional_kwargs"} <= fields.keys():
        return None
    role = fields.get("role")
    content = [_block(fields_of(block)) for block in parts_of(fields.get("blocks"))]
    answered = fields_of(fields.get("additional_kwargs")).get("tool_call_id")
    if isinstance(answered, str):
        result = {"type": "tool_result", "tool_use_id": answered, "content": content}
        return {"role": "user", "content": [result]}
    name = _ROLES.get(role, role) if isinstance(role, str) else role
    return {"role": name, "content": content}


def _block(block: Mapping[str, object]) -> Mapping[str, object]:
    kind = block.get("block_type")
    if kind == "tool_call":
        return {
            "type": "tool_use",
            "id": block.get("tool_call_id"),
            "name": block.get("tool_name"),
            "input": block.get("tool_kwargs"),
        }
    if kind == "thinking":
        return {"type": "thinking", "thinking": block.get("content")}
    return {"type": kind, **block}
