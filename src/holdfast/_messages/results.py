"""The result of a call where it stands in a transcript."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast._messages.dialects import PLACEHOLDERS, is_block
from holdfast._messages.loose import fields_of, parts_of
from holdfast._messages.transcript import answers_of


def with_result(
    message: object, id_: str, result: Mapping[str, object]
) -> Mapping[str, object]:
    """The message with another result of a call, which is a message or a block."""
    if not is_block(result):
        return result
    fields = fields_of(message)
    parts = [
        result if _answers(part, id_) else part
        for part in parts_of(fields.get("content"))
    ]
    return {**fields, "content": parts}


def is_placeholder(message: object, id_: str) -> bool:
    """True if a message answers a call only by saying that the result is not known."""
    if id_ not in answers_of(message):
        return False
    fields = fields_of(message)
    blocks = [p for p in parts_of(fields.get("content")) if _answers(p, id_)]
    found = fields_of(blocks[0]) if blocks else fields
    text = found.get("output", found.get("content"))
    return isinstance(text, str) and text in PLACEHOLDERS


def _answers(part: object, id_: str) -> bool:
    return answers_of({"role": "user", "content": [part]}) == [id_]
